// The typed query, piece by piece: what the chips show, what a completion replaces, what a facet or a brush
// writes. The meaning of a piece, and whether it is valid, is decided by the gateway alone
// (query_language.py); this only finds where pieces begin and end, in the same way. Pure.

export interface Piece {
  start: number;
  end: number;
  sign: "" | "-" | "~";
  /** The filter's name, in lower case; "" for words. */
  field: string;
  /** Without sign, name and quotes. */
  text: string;
  quoted: boolean;
}

export interface Field {
  name: string;
  says: string;
  /** Values that are always the same. */
  values?: readonly string[];
  kind: "name" | "figure" | "time";
}

export const TYPES: readonly string[] = [
  "decision_log",
  "decision_request",
  "decision_response",
  "status_alert",
  "artifact_share",
  "action_confirmation",
  "heartbeat",
  "text",
  "system_event",
];

export const FIELDS: readonly Field[] = [
  { name: "agent", says: "said by this agent", kind: "name" },
  { name: "session", says: "in this session", kind: "name" },
  { name: "type", says: "of this message type", kind: "name", values: TYPES },
  {
    name: "state",
    says: "delivery state",
    kind: "name",
    values: ["forwarded", "held", "rejected", "refused"],
  },
  {
    name: "status",
    says: "step status",
    kind: "name",
    values: ["success", "failure", "pending", "skipped"],
  },
  { name: "tool", says: "with this tool", kind: "name" },
  { name: "cluster", says: "from this cluster", kind: "name" },
  {
    name: "since",
    says: "not before",
    kind: "time",
    values: ["15m", "1h", "24h", "7d", "today", "yesterday"],
  },
  { name: "until", says: "not after", kind: "time", values: ["1h", "today", "yesterday"] },
  { name: "cost", says: "dollars of the step", kind: "figure", values: [">0.01", ">0.1", ">1"] },
  { name: "tokens", says: "tokens of the step", kind: "figure", values: [">1000", ">10000"] },
  { name: "confidence", says: "step confidence", kind: "figure", values: ["<0.5", "<0.8"] },
  { name: "entropy", says: "low means repetition", kind: "figure", values: ["<0.3", "<0.5"] },
];
const KNOWN = new Map(FIELDS.map((one) => [one.name, one]));
/** Other names for the same (the gateway knows them, too). */
const ALIASES: Record<string, string> = {
  from: "since",
  after: "since",
  before: "until",
  to: "until",
  message_type: "type",
};
const CLOSING: Record<string, string> = { '"': '"', "“": "”", "„": "“", "«": "»" };
const KEY = /([A-Za-z_]{1,32}):/y;
const BLANK = /\s/;

export function fieldOf(piece: Piece): Field | undefined {
  return KNOWN.get(ALIASES[piece.field] ?? piece.field);
}

export function piecesOf(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  while (at < text.length) {
    if (BLANK.test(text[at] as string)) {
      at += 1;
      continue;
    }
    const start = at;
    let sign: Piece["sign"] = "";
    if ("-~!−".includes(text[at] as string) && at + 1 < text.length && !BLANK.test(text[at + 1] as string)) {
      sign = text[at] === "~" ? "~" : "-";
      at += 1;
    }
    KEY.lastIndex = at;
    const key = KEY.exec(text);
    if (key) at = KEY.lastIndex;
    const field = (key?.[1] ?? "").toLowerCase();
    const closing = at < text.length ? CLOSING[text[at] as string] : undefined;
    if (closing) {
      const found_at = text.indexOf(closing, at + 1);
      const end = found_at < 0 ? text.length : found_at;
      const stop = Math.min(text.length, end + 1);
      found.push({ start, end: stop, sign, field, text: text.slice(at + 1, end), quoted: true });
      at = stop;
    } else {
      let end = at;
      while (end < text.length && !BLANK.test(text[end] as string)) end += 1;
      found.push({ start, end, sign, field, text: text.slice(at, end), quoted: false });
      at = end;
    }
  }
  return found;
}

const JOINS = new Set(["OR", "|", "||", "AND", "&", "&&", "NOT"]);

export interface Chip {
  piece: Piece;
  kind: "filter" | "meaning" | "phrase" | "word" | "join" | "without" | "unknown";
  label: string;
}

export function chipsOf(text: string): Chip[] {
  return piecesOf(text).map((piece) => {
    const label = text.slice(piece.start, piece.end);
    const bare = !piece.quoted && !piece.field && !piece.sign;
    if (bare && JOINS.has(piece.text)) return { piece, kind: "join", label };
    if (piece.sign === "~") return { piece, kind: "meaning", label };
    if (piece.field) return { piece, kind: fieldOf(piece) ? "filter" : "unknown", label };
    if (piece.sign === "-") return { piece, kind: "without", label };
    return { piece, kind: piece.quoted ? "phrase" : "word", label };
  });
}

/** Without this piece, and without a join that would become dangling. */
export function without(text: string, piece: Piece): string {
  const kept = `${text.slice(0, piece.start).trimEnd()} ${text.slice(piece.end).trimStart()}`.trim();
  return kept
    .replace(/^(?:(?:OR|AND|\|{1,2}|&{1,2})\s+)+/, "")
    .replace(/(?:\s+(?:OR|AND|NOT|\|{1,2}|&{1,2}))+$/, "");
}

/** As it must be written: quoted if it contains a space, a comma or a quote. */
export function written(value: string): string {
  return /[\s,"“„«]/.test(value) || value === "" ? `"${value.replaceAll('"', "")}"` : value;
}

function withField(text: string, names: readonly string[], said: string): string {
  let rest = text;
  for (const piece of piecesOf(text).toReversed())
    if (piece.sign === "" && names.includes(ALIASES[piece.field] ?? piece.field)) rest = without(rest, piece);
  return `${rest} ${said}`.trim();
}

/** Replaces the one filter of this name. */
export function filtered(text: string, field: string, value: string): string {
  return withField(text, [field], `${field}:${written(value)}`);
}

/** Whether the query asks for exactly this value of a field. */
export function asksFor(text: string, field: string, value: string): Piece | undefined {
  return piecesOf(text).find(
    (piece) => piece.sign === "" && (ALIASES[piece.field] ?? piece.field) === field && piece.text === value,
  );
}

/** A click on a facet: adds the filter, or removes it if present. */
export function toggledFilter(text: string, field: string, value: string): string {
  const there = asksFor(text, field, value);
  return there ? without(text, there) : filtered(text, field, value);
}

/** The same, excluding: `-agent:x`. */
export function leftOut(text: string, field: string, value: string): string {
  return `${text} -${field}:${written(value)}`.trim();
}

/** A time range, replacing any other. */
export function between(text: string, since: string, until: string): string {
  return withField(text, ["since", "until"], `since:${since} until:${until}`);
}

export function anyTime(text: string): string {
  return withField(text, ["since", "until"], "");
}

export const hasTimes = (text: string): boolean => anyTime(text) !== text.trim();
