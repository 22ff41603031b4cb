// The find and hide expression: `state:blocked type:writer cluster:aws-* -researcher rate>5 text "two
// words"`. Terms are ANDed; `a|b` in a value is OR; `-` negates; `*` matches anything. Errors are values:
// every fault with its position, never an exception, so that the field can explain them while one types.
import type { NodeRecord } from "./types";

export interface Fault {
  at: number;
  length: number;
  says: string;
}

export interface Term {
  not: boolean;
  test: (node: NodeRecord) => boolean;
  text: string;
}

export type Parsed = { ok: true; terms: Term[] } | { ok: false; faults: Fault[] };

interface Piece {
  at: number;
  text: string;
}

type FieldText = (node: NodeRecord) => (string | null | undefined)[];

const STATE_WORDS: Record<string, string[]> = {
  alert_entropy: ["alert_entropy", "alert", "loop", "entropy"],
  schema_violation: ["schema_violation", "violation"],
  blocked: ["blocked", "held", "paused"],
  dead: ["dead", "silent"],
  active: ["active"],
  idle: ["idle"],
};

const WORD_FIELDS: Record<string, FieldText> = {
  state: (node) => STATE_WORDS[node.state] ?? [node.state],
  type: (node) => [node.agent_type],
  cluster: (node) => [node.cluster_id],
  name: (node) => [node.name, node.id],
  id: (node) => [node.id],
  alarm: (node) => (node.alarms ?? []).flatMap((alarm) => [alarm.kind, alarm.text]),
  session: (node) => (node.alarms ?? []).map((alarm) => alarm.session_id),
  region: (node) => [node.region?.region, node.region?.name, node.cluster_id],
  is: (node) => [
    node.ghost ? "ghost" : null,
    (node.alarms?.length ?? 0) > 0 ? "alarmed" : null,
    node.liveness,
    ...(STATE_WORDS[node.state] ?? []),
  ],
};

const NUMBER_FIELDS: Record<string, (node: NodeRecord) => number> = {
  rate: (node) => node.rate_per_s ?? 0,
  cost: (node) => node.cost_per_min ?? 0,
  failures: (node) => node.failures_60s ?? 0,
  messages: (node) => node.messages ?? 0,
};

/** Fields whose value must match the whole word; the others match any part. */
const WHOLE = new Set(["state", "is", "id"]);
const IS_WORDS = new Set(["ghost", "alarmed", "healthy", "zombie", "evicted", "unknown"]);

export const FIELDS: readonly string[] = [...Object.keys(WORD_FIELDS), ...Object.keys(NUMBER_FIELDS)];

export function parseFind(text: string): Parsed {
  const faults: Fault[] = [];
  const terms: Term[] = [];
  for (const piece of pieces(text, faults)) {
    const made = term(piece, faults);
    if (made) terms.push(made);
  }
  return faults.length > 0 ? { ok: false, faults } : { ok: true, terms };
}

export function matches(terms: readonly Term[], node: NodeRecord): boolean {
  for (const one of terms) if (one.test(node) === one.not) return false;
  return true;
}

function pieces(text: string, faults: Fault[]): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text.charAt(at))) {
      at += 1;
      continue;
    }
    const start = at;
    let quoted = -1;
    while (at < text.length && (quoted >= 0 || !/\s/.test(text.charAt(at)))) {
      if (text.charAt(at) === '"') quoted = quoted >= 0 ? -1 : at;
      at += 1;
    }
    if (quoted >= 0) {
      faults.push({
        at: quoted,
        length: text.length - quoted,
        says: 'the quote is not closed: add a " at its end',
      });
    }
    found.push({ at: start, text: text.slice(start, at) });
  }
  return found;
}

function term(piece: Piece, faults: Fault[]): Term | null {
  const not = piece.text.startsWith("-");
  const body = not ? piece.text.slice(1) : piece.text;
  const at = piece.at + (not ? 1 : 0);
  if (body === "") {
    faults.push({
      at: piece.at,
      length: 1,
      says: "- excludes what follows it, e.g. -researcher",
    });
    return null;
  }
  const parts = /^([\p{L}_]+)(>=|<=|>|<|=|:)(.*)$/u.exec(body);
  const test = parts
    ? fieldTest(parts[1] ?? "", parts[2] ?? ":", parts[3] ?? "", at, faults)
    : anyTest(unquoted(body));
  return test ? { not, test, text: piece.text } : null;
}

function fieldTest(
  name: string,
  sign: string,
  value: string,
  at: number,
  faults: Fault[],
): Term["test"] | null {
  const field = name.toLowerCase();
  const valueAt = at + name.length + sign.length;
  const fault = (where: number, length: number, says: string): null => {
    faults.push({ at: where, length: Math.max(1, length), says });
    return null;
  };
  const words = WORD_FIELDS[field];
  const number = NUMBER_FIELDS[field];
  if (!words && !number) {
    return fault(at, name.length, `unknown field ${field}; fields: ${FIELDS.join(", ")}`);
  }
  if (value === "") return fault(at, name.length + sign.length, `${field}${sign} needs a value`);
  if (number) {
    if (sign === ":")
      return fault(at, body(name, sign, value), `${field} is a number: use ${field}>5 or ${field}<=5`);
    const bound = Number(value);
    if (!Number.isFinite(bound)) return fault(valueAt, value.length, `${value} is not a number`);
    return (node) => compare(number(node), sign, bound);
  }
  if (sign !== ":" && sign !== "=") {
    return fault(at + name.length, sign.length, `${field} is text: use ${field}:value`);
  }
  const wanted = value.split("|").map((one) => unquoted(one));
  for (const one of wanted) {
    const says = unknownWord(field, one);
    if (says) return fault(valueAt, value.length, says);
  }
  const tests = wanted.map((one) => pattern(one, WHOLE.has(field) || sign === "="));
  return (node) => (words?.(node) ?? []).some((word) => word != null && tests.some((test) => test(word)));
}

const body = (name: string, sign: string, value: string): number => name.length + sign.length + value.length;

function unknownWord(field: string, value: string): string | null {
  if (value.includes("*")) return null;
  const states = Object.values(STATE_WORDS).flat();
  const lower = value.toLowerCase();
  if (field === "state" && !states.includes(lower)) {
    return `unknown state ${value}; states: idle, active, loop, violation, dead, blocked`;
  }
  if (field === "is" && !states.includes(lower) && !IS_WORDS.has(lower)) {
    return `unknown is:${value}; use is:ghost, is:alarmed, is:zombie, is:evicted or a state`;
  }
  return null;
}

function anyTest(value: string): Term["test"] {
  const test = pattern(value, false);
  return (node) =>
    test(node.id) ||
    (node.name != null && test(node.name)) ||
    (node.agent_type != null && test(node.agent_type)) ||
    (node.cluster_id != null && test(node.cluster_id)) ||
    (node.intent != null && test(node.intent)) ||
    (node.reason != null && test(node.reason));
}

/** With a `*` the whole word must match, as in a shell; without one any part does, unless `whole`. */
function pattern(value: string, whole: boolean): (word: string) => boolean {
  const lower = value.toLowerCase();
  if (lower.includes("*")) {
    const parts = lower.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const form = new RegExp(`^${parts.join(".*")}$`, "u");
    return (word) => form.test(word.toLowerCase());
  }
  return whole ? (word) => word.toLowerCase() === lower : (word) => word.toLowerCase().includes(lower);
}

const unquoted = (text: string): string => text.replaceAll('"', "");

function compare(value: number, sign: string, bound: number): boolean {
  if (sign === ">") return value > bound;
  if (sign === "<") return value < bound;
  if (sign === ">=") return value >= bound;
  if (sign === "<=") return value <= bound;
  return value === bound;
}
