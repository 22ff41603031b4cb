// The two canonical forms of the trail, parsed and serialised as the independent verifier does
// (ledger/verify.py): RFC 8785 for what is stored, the seed's `av-json/1` for what its chain hashes. No
// floats and no integer beyond 2^53-1 in events; the content of a thought may hold any number, which
// JavaScript writes as RFC 8785 requires.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/**
 * The object whose RFC 8785 form this text is; null for any other text, including a float or a duplicate
 * name.
 */
export function canonicalObject(text: string): JsonObject | null {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
    if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
    // Fast path for nearly every record: names keep their order unless they look like numbers.
    if (fits(value) ? JSON.stringify(value) === text : written(value, byUnit) === text) return value;
  } catch {
    // no JSON, nested too deep, or outside the subset
  }
  return null;
}

/**
 * Whether every name sorts after the previous one (RFC 8785 §3.2.3: by UTF-16 unit, as JavaScript compares).
 */
function fits(value: Json): boolean {
  if (typeof value === "string" || value === null || typeof value === "boolean") return true;
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new RangeError("no integer of the subset");
    return true;
  }
  if (Array.isArray(value)) {
    let all = true;
    for (const one of value) all = fits(one) && all;
    return all;
  }
  let before = "";
  let isFirst = true;
  let all = true;
  for (const name in value) {
    if (!isFirst && name <= before) all = false;
    before = name;
    isFirst = false;
    all = fits(value[name] as Json) && all;
  }
  return all;
}

type Order = (one: string, other: string) => number;
const byUnit: Order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
/** Python sorts by code point: this differs from UTF-16 only for characters beyond the basic plane. */
const byPoint: Order = (one, other) => {
  const left = Array.from(one);
  const right = Array.from(other);
  for (let n = 0; n < Math.min(left.length, right.length); n++) {
    const by = (left[n]?.codePointAt(0) ?? 0) - (right[n]?.codePointAt(0) ?? 0);
    if (by !== 0) return by;
  }
  return left.length - right.length;
};

function written(value: Json, order: Order, number = inEvents): string {
  if (Array.isArray(value)) return `[${value.map((one) => written(one, order, number)).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const names = Object.keys(value).sort(order);
    const member = (name: string) => `${JSON.stringify(name)}:${written(value[name] as Json, order, number)}`;
    return `{${names.map(member).join(",")}}`;
  }
  return typeof value === "number" ? number(value) : JSON.stringify(value);
}

function inEvents(value: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError("no integer of the subset");
  return JSON.stringify(value);
}

function inWords(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError("no number of JSON");
  return JSON.stringify(value);
}

/** RFC 8785 of a value of the subset; throws outside it. */
export function jcs(value: Json): string {
  return written(value, byUnit);
}

/** RFC 8785 of any JSON, as the content of a thought is serialised. */
export function jcsOfWords(value: Json): string {
  return written(value, byUnit, inWords);
}

/** DEL and all above it as the seed's form writes them. */
export function escaped(text: string): string {
  return ABOVE.test(text)
    ? text.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    : text;
}

const ABOVE = /[\x7f-\uffff]/;

/** The seed's form (`json.dumps(sort_keys=True)`): ASCII only, names by code point. */
export function avJson(value: Json): string {
  return escaped(written(value, byPoint));
}
