/**
 * SHA-256 and SHA-1 (FIPS 180-4), synchronous: what names a step must be known when the step is taken, and WebCrypto's
 * digest is asynchronous and missing on pages over plain http. Only short names are hashed; a test compares both with
 * Node's own. SHA-1 is used for UUIDv5 alone (RFC 9562 §5.5), never for a proof.
 */

const encoder = new TextEncoder();
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PRIMES: number[] = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((prime) => n % prime !== 0)) PRIMES.push(n);
const fraction = (root: number): number => ((root % 1) * 2 ** 32) | 0;
const K = PRIMES.map((prime) => fraction(Math.cbrt(prime)));
const FIRST = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const right = (word: number, n: number): number => (word >>> n) | (word << (32 - n));
const left = (word: number, n: number): number => (word << n) | (word >>> (32 - n));

/** Padded to whole blocks of 16 words, the length in bits at the end (§5.1.1). */
function blocks(bytes: Uint8Array): number[][] {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor((bytes.length * 8) / 2 ** 32));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  const words = (at: number): number[] => Array.from({ length: 16 }, (_, n) => view.getInt32(at + 4 * n));
  return Array.from({ length: padded.length / 64 }, (_, n) => words(64 * n));
}

function written(words: readonly number[]): Uint8Array {
  const out = new DataView(new ArrayBuffer(4 * words.length));
  words.forEach((word, n) => {
    out.setInt32(4 * n, word);
  });
  return new Uint8Array(out.buffer);
}

export function sha256(bytes: Uint8Array): Uint8Array {
  let state = FIRST;
  for (const w of blocks(bytes)) {
    for (let i = 16; i < 64; i++) {
      const [x, y] = [w[i - 15] as number, w[i - 2] as number];
      const s0 = right(x, 7) ^ right(x, 18) ^ (x >>> 3);
      const s1 = right(y, 17) ^ right(y, 19) ^ (y >>> 10);
      w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const s1 = right(e, 6) ^ right(e, 11) ^ right(e, 25);
      const one = (h + s1 + ((e & f) ^ (~e & g)) + (K[i] as number) + (w[i] as number)) | 0;
      const two = ((right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    state = [a, b, c, d, e, f, g, h].map((word, n) => (word + (state[n] as number)) | 0);
  }
  return written(state);
}

export function sha1(bytes: Uint8Array): Uint8Array {
  let state = [0x67452301, 0xefcdab89 | 0, 0x98badcfe | 0, 0x10325476, 0xc3d2e1f0 | 0];
  for (const w of blocks(bytes)) {
    for (let i = 16; i < 80; i++)
      w[i] = left(
        (w[i - 3] as number) ^ (w[i - 8] as number) ^ (w[i - 14] as number) ^ (w[i - 16] as number),
        1,
      );
    let [a, b, c, d, e] = state as [number, number, number, number, number];
    for (let i = 0; i < 80; i++) {
      const [f, k] =
        i < 20
          ? [(b & c) | (~b & d), 0x5a827999]
          : i < 40
            ? [b ^ c ^ d, 0x6ed9eba1]
            : i < 60
              ? [(b & c) | (b & d) | (c & d), 0x8f1bbcdc]
              : [b ^ c ^ d, 0xca62c1d6];
      [e, d, c, b, a] = [d, c, left(b, 30), a, (left(a, 5) + f + e + k + (w[i] as number)) | 0];
    }
    state = [a, b, c, d, e].map((word, n) => (word + (state[n] as number)) | 0);
  }
  return written(state);
}
