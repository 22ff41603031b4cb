/**
 * Encodes any value as JSON text. Rule: never throws. What JSON cannot represent is sent in a form the gateway
 * validates: a big integer as a number where that is exact, else as text; a cycle as `[circular]`; a getter that
 * throws as `[unreadable]`. A lone surrogate leaves escaped, and the gateway names it as a fault.
 */

const MAX_DEPTH = 100;

export function encoded(value: unknown): string {
  try {
    return JSON.stringify(value, jsonForm) ?? JSON.stringify(String(value));
  } catch {
    // A cycle, a `toJSON` or getter that throws, too deep, too long: encode each part separately.
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

function jsonForm(_: string, value: unknown): unknown {
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
    const form = jsonForm("", value);
    if (form === null || typeof form !== "object") return typeof form === "function" ? undefined : form;
    if (above.includes(form)) return "[circular]";
    if (above.length >= MAX_DEPTH) return "[too deep]";
    if (form instanceof Date) return Number.isNaN(form.getTime()) ? null : form.toISOString();
    const within = [...above, form];
    if (Array.isArray(form)) return form.map((one) => plain(one, within) ?? null);
    return Object.fromEntries(Object.keys(form).map((name) => [name, member(form, name, within)]));
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

/** A tool's input as it is sent: a string unchanged, anything else as JSON. */
export function writtenInput(input: unknown): string | null {
  if (input === undefined || input === null) return null;
  return typeof input === "string" ? input : encoded(input);
}

const LONG = /\d{16}/;
const WHOLE = /^-?\d+$/;

/** An integer too large for a number becomes a BigInt: rounded, it would differ from what was approved. */
function exact(this: unknown, _: string, value: unknown, { source = "" }: { source?: string } = {}): unknown {
  return typeof value === "number" && !Number.isSafeInteger(value) && WHOLE.test(source)
    ? BigInt(source)
    : value;
}

/** A tool's input as data. Text that is not JSON stays unchanged. */
export function decoded(value: unknown): unknown {
  if (typeof value !== "string") return value ?? null;
  try {
    return LONG.test(value) ? JSON.parse(value, exact) : JSON.parse(value);
  } catch {
    return value;
  }
}
