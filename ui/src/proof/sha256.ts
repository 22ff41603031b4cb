// SHA-256 (FIPS 180-4), synchronous: WebCrypto's is asynchronous, and a hundred thousand promises take longer
// than the hashing itself. Also available where WebCrypto is not (a page over plain http). A test compares it
// with WebCrypto.

const PRIMES: number[] = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((prime) => n % prime !== 0)) PRIMES.push(n);

/** The first 32 bits of the fraction (FIPS 180-4 §4.2.2, §5.3.3). */
const fraction = (root: number): number => ((root % 1) * 2 ** 32) | 0;
const K = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));
const FIRST = Int32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));

const state = new Int32Array(8);
const w = new Int32Array(64);
const last = new Uint8Array(128);

function compress(bytes: Uint8Array, from: number): void {
  for (let i = 0, at = from; i < 16; i++, at += 4)
    w[i] =
      ((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number);
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15] as number;
    const y = w[i - 2] as number;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
  }
  let a = state[0] as number;
  let b = state[1] as number;
  let c = state[2] as number;
  let d = state[3] as number;
  let e = state[4] as number;
  let f = state[5] as number;
  let g = state[6] as number;
  let h = state[7] as number;
  // Eight rounds at a time, each with the names rotated by one: nothing is copied from one to the next.
  let t = 0;
  for (let i = 0; i < 64; i += 8) {
    t =
      (h +
        (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) +
        (g ^ (e & (f ^ g))) +
        (K[i] as number) +
        (w[i] as number)) |
      0;
    d = (d + t) | 0;
    h =
      (t +
        (((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) +
        ((a & b) | (c & (a | b)))) |
      0;
    t =
      (g +
        (((d >>> 6) | (d << 26)) ^ ((d >>> 11) | (d << 21)) ^ ((d >>> 25) | (d << 7))) +
        (f ^ (d & (e ^ f))) +
        (K[i + 1] as number) +
        (w[i + 1] as number)) |
      0;
    c = (c + t) | 0;
    g =
      (t +
        (((h >>> 2) | (h << 30)) ^ ((h >>> 13) | (h << 19)) ^ ((h >>> 22) | (h << 10))) +
        ((h & a) | (b & (h | a)))) |
      0;
    t =
      (f +
        (((c >>> 6) | (c << 26)) ^ ((c >>> 11) | (c << 21)) ^ ((c >>> 25) | (c << 7))) +
        (e ^ (c & (d ^ e))) +
        (K[i + 2] as number) +
        (w[i + 2] as number)) |
      0;
    b = (b + t) | 0;
    f =
      (t +
        (((g >>> 2) | (g << 30)) ^ ((g >>> 13) | (g << 19)) ^ ((g >>> 22) | (g << 10))) +
        ((g & h) | (a & (g | h)))) |
      0;
    t =
      (e +
        (((b >>> 6) | (b << 26)) ^ ((b >>> 11) | (b << 21)) ^ ((b >>> 25) | (b << 7))) +
        (d ^ (b & (c ^ d))) +
        (K[i + 3] as number) +
        (w[i + 3] as number)) |
      0;
    a = (a + t) | 0;
    e =
      (t +
        (((f >>> 2) | (f << 30)) ^ ((f >>> 13) | (f << 19)) ^ ((f >>> 22) | (f << 10))) +
        ((f & g) | (h & (f | g)))) |
      0;
    t =
      (d +
        (((a >>> 6) | (a << 26)) ^ ((a >>> 11) | (a << 21)) ^ ((a >>> 25) | (a << 7))) +
        (c ^ (a & (b ^ c))) +
        (K[i + 4] as number) +
        (w[i + 4] as number)) |
      0;
    h = (h + t) | 0;
    d =
      (t +
        (((e >>> 2) | (e << 30)) ^ ((e >>> 13) | (e << 19)) ^ ((e >>> 22) | (e << 10))) +
        ((e & f) | (g & (e | f)))) |
      0;
    t =
      (c +
        (((h >>> 6) | (h << 26)) ^ ((h >>> 11) | (h << 21)) ^ ((h >>> 25) | (h << 7))) +
        (b ^ (h & (a ^ b))) +
        (K[i + 5] as number) +
        (w[i + 5] as number)) |
      0;
    g = (g + t) | 0;
    c =
      (t +
        (((d >>> 2) | (d << 30)) ^ ((d >>> 13) | (d << 19)) ^ ((d >>> 22) | (d << 10))) +
        ((d & e) | (f & (d | e)))) |
      0;
    t =
      (b +
        (((g >>> 6) | (g << 26)) ^ ((g >>> 11) | (g << 21)) ^ ((g >>> 25) | (g << 7))) +
        (a ^ (g & (h ^ a))) +
        (K[i + 6] as number) +
        (w[i + 6] as number)) |
      0;
    f = (f + t) | 0;
    b =
      (t +
        (((c >>> 2) | (c << 30)) ^ ((c >>> 13) | (c << 19)) ^ ((c >>> 22) | (c << 10))) +
        ((c & d) | (e & (c | d)))) |
      0;
    t =
      (a +
        (((f >>> 6) | (f << 26)) ^ ((f >>> 11) | (f << 21)) ^ ((f >>> 25) | (f << 7))) +
        (h ^ (f & (g ^ h))) +
        (K[i + 7] as number) +
        (w[i + 7] as number)) |
      0;
    e = (e + t) | 0;
    a =
      (t +
        (((b >>> 2) | (b << 30)) ^ ((b >>> 13) | (b << 19)) ^ ((b >>> 22) | (b << 10))) +
        ((b & c) | (d & (b | c)))) |
      0;
  }
  state[0] = ((state[0] as number) + a) | 0;
  state[1] = ((state[1] as number) + b) | 0;
  state[2] = ((state[2] as number) + c) | 0;
  state[3] = ((state[3] as number) + d) | 0;
  state[4] = ((state[4] as number) + e) | 0;
  state[5] = ((state[5] as number) + f) | 0;
  state[6] = ((state[6] as number) + g) | 0;
  state[7] = ((state[7] as number) + h) | 0;
}

/** The digest of `bytes[from:to]`, written to `out` at `at`. */
export function digestInto(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): void {
  state.set(FIRST);
  const length = to - from;
  let place = from;
  for (; place + 64 <= to; place += 64) compress(bytes, place);
  const rest = to - place;
  last.fill(0);
  for (let i = 0; i < rest; i++) last[i] = bytes[place + i] as number;
  last[rest] = 0x80;
  const blocks = rest < 56 ? 64 : 128;
  const bits = length * 8;
  for (let i = 0, high = Math.floor(bits / 2 ** 32); i < 4; i++) {
    last[blocks - 5 - i] = high >>> (8 * i);
    last[blocks - 1 - i] = bits >>> (8 * i);
  }
  compress(last, 0);
  if (blocks === 128) compress(last, 64);
  for (let i = 0; i < 8; i++) {
    const word = state[i] as number;
    out[at + 4 * i] = word >>> 24;
    out[at + 4 * i + 1] = word >>> 16;
    out[at + 4 * i + 2] = word >>> 8;
    out[at + 4 * i + 3] = word;
  }
}

export function sha256(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(32);
  digestInto(bytes, 0, bytes.length, out, 0);
  return out;
}

const HEX = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, "0"));

export function hex(bytes: Uint8Array, from = 0, to = bytes.length): string {
  let text = "";
  for (let i = from; i < to; i++) text += HEX[bytes[i] as number];
  return text;
}

/** The canonical spelling of a hash in a record: `sha256:` and 64 lower-case digits. */
export function hashText(digest: Uint8Array): string {
  return `sha256:${hex(digest)}`;
}

/** The 32 bytes of that spelling; null for any other text. */
export function hashOf(text: unknown): Uint8Array | null {
  if (typeof text !== "string" || !/^sha256:[0-9a-f]{64}$/.test(text)) return null;
  return Uint8Array.from({ length: 32 }, (_, n) => Number.parseInt(text.slice(7 + 2 * n, 9 + 2 * n), 16));
}

export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, n) => byte === other[n]);
}

const utf8 = new TextEncoder();
export const bytesOf = (text: string): Uint8Array<ArrayBuffer> => utf8.encode(text);

export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** Standard base64 in its canonical encoding, or null: spare bits that are not zero would be a second one. */
export function unbase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  try {
    const raw = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    return base64(raw) === text ? raw : null;
  } catch {
    return null;
  }
}
