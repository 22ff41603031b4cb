/**
 * Whatever an agent says, as JSON text. Law: this never throws. What JSON cannot hold is sent in a form the gateway
 * will judge: a big integer as a number where that is exact, else as text; a circle as `[circular]`; a getter that
 * throws as `[unreadable]`. A lone surrogate leaves escaped, and the gateway names it as a fault.
 */

const DEEPEST = 100;

export function encoded(value: unknown): string {
  try {
    return JSON.stringify(value, spelled) ?? JSON.stringify(String(value));
  } catch {
    // A circle, a `toJSON` or a getter that throws, too deep, too long: look at each piece by itself.
    return copied(value);
  }
}

function copied(value: unknown): string {
  try {
    return JSON.stringify(plain(value, [])) ?? "null";
  } catch {
    return '"[unreadable]"';
  }
}

function spelled(_: string, value: unknown): unknown {
  if (typeof value === "bigint")
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  return value;
}

function plain(value: unknown, above: readonly unknown[]): unknown {
  try {
    const told = spelled("", value);
    if (told === null || typeof told !== "object") return typeof told === "function" ? undefined : told;
    if (above.includes(told)) return "[circular]";
    if (above.length >= DEEPEST) return "[too deep]";
    if (told instanceof Date) return Number.isNaN(told.getTime()) ? null : told.toISOString();
    const within = [...above, told];
    if (Array.isArray(told)) return told.map((one) => plain(one, within) ?? null);
    return Object.fromEntries(Object.keys(told).map((name) => [name, member(told, name, within)]));
  } catch {
    return "[unreadable]";
  }
}

function member(of: object, name: string, above: readonly unknown[]): unknown {
  try {
    return plain((of as Record<string, unknown>)[name], above);
  } catch {
    return "[unreadable]";
  }
}

/** A tool's input as it travels: a string as it is, all else as JSON. */
export function writtenInput(input: unknown): string | null {
  if (input === undefined || input === null) return null;
  return typeof input === "string" ? input : encoded(input);
}

const LONG = /\d{16}/;
const WHOLE = /^-?\d+$/;

/** A whole number too large for a number is a big integer: rounded it would be another one than was approved. */
function exact(this: unknown, _: string, value: unknown, { source = "" }: { source?: string } = {}): unknown {
  return typeof value === "number" && !Number.isSafeInteger(value) && WHOLE.test(source)
    ? BigInt(source)
    : value;
}

/** A tool's input as data. What is not JSON stays as it is. */
export function decoded(value: unknown): unknown {
  if (typeof value !== "string") return value ?? null;
  try {
    return LONG.test(value) ? JSON.parse(value, exact) : JSON.parse(value);
  } catch {
    return value;
  }
}
