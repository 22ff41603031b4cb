// What the costs board shows: grouping, time range, drill-down; and the same as a file. Pure.
import type { CostsAnswer, LinesAnswer } from "~/protocol/openapi";
import { inert } from "~/widgets/inert";

/** The gateway names at most this many agents of a branch (lines.py). */
const NAMED = 5;

/** The key of the line for everything not listed. */
export const ELSEWHERE = "elsewhere";

export const BYS = ["agent", "session", "cluster", "branch", "type", "tool", "model"] as const;
export type By = (typeof BYS)[number];
export const WINDOWS = { "15m": 15, "1h": 60, "6h": 360, "24h": 1_440, "7d": 10_080 } as const;
export type Span = keyof typeof WINDOWS;
export const SPAN_WORDS: Record<Span, string> = {
  "15m": "the last 15 minutes",
  "1h": "the last hour",
  "6h": "the last 6 hours",
  "24h": "the last day",
  "7d": "the last 7 days",
};

export interface Look {
  by: By;
  span: Span;
  /** Drill-down: an agent's sessions, a session's branches. */
  agent: string | undefined;
  session: string | undefined;
}

/** Parses the URL; invalid values become the defaults. */
export function looking(url: Record<string, string | undefined>): Look {
  const by = (BYS as readonly string[]).includes(url.by ?? "") ? (url.by as By) : "agent";
  const span = url.span !== undefined && Object.hasOwn(WINDOWS, url.span) ? (url.span as Span) : "1h";
  const agent = by === "session" || by === "branch" ? url.agent : undefined;
  const session = by === "branch" || by === "agent" ? url.session : undefined;
  return { by, span, agent, session };
}

/** The start, to the whole minute: two queries within one minute are the same query. */
export function sinceOf(span: Span, nowMs: number): string {
  const minute = Math.floor(nowMs / 60_000) - WINDOWS[span] + 1;
  return new Date(minute * 60_000).toISOString();
}

export interface Line {
  key: string;
  /** Display name. */
  name: string;
  /** Below the name: for a branch its session, agent and depth. */
  also: string;
  cost: number;
  share: number;
  tokens: number;
  calls: number;
  /** Its id, for links and drill-down; null for items without a name. */
  id: string | null;
  session_id?: string;
  step?: string;
}

export const NAMELESS: Record<Exclude<By, "branch">, string> = {
  agent: "(unknown agent)",
  session: "(unknown session)",
  cluster: "(no cluster)",
  type: "(no type)",
  tool: "(no tool)",
  model: "(no model)",
};

/** Everything beyond the top items is one line: without it the column, and the file, would not add up. */
export function linesOfCosts({ by, items, total, next_cursor }: CostsAnswer): Line[] {
  const lines: Line[] = items.map((one) => ({
    key: `${by} ${one.id ?? ""}`,
    id: one.id,
    name: one.id === null ? NAMELESS[by] : inert(one.id),
    also: "",
    cost: one.cost,
    share: one.share,
    tokens: one.tokens,
    calls: one.messages,
    ...(by === "session" && one.id !== null && { session_id: one.id }),
  }));
  if (next_cursor === null) return lines;
  const left = (of: "cost" | "tokens" | "calls", all = 0) =>
    Math.max(0, all - lines.reduce((sum, line) => sum + line[of], 0));
  const cost = left("cost", total.cost);
  lines.push({
    key: ELSEWHERE,
    id: null,
    name: "(all others)",
    also: `beyond the top ${items.length.toLocaleString("en")}`,
    cost,
    share: total.cost ? cost / total.cost : 0,
    tokens: left("tokens", total.tokens),
    calls: left("calls", total.messages),
  });
  return lines;
}

/** `rest` is the cost of branches not listed: without it the column would not add up. */
export function linesOfBranches({ items, elsewhere, total }: LinesAnswer): Line[] {
  const lines: Line[] = items.map((one) => ({
    key: one.step,
    id: one.step,
    name: inert(one.intent ?? "") || `step #${one.sequence_number}`,
    also: `${one.agent_id ?? "unknown agent"}${one.agents.length > 1 ? ` and ${one.agents.length - 1}${one.agents.length === NAMED ? " or" : ""} more` : ""}`,
    cost: one.cost,
    share: one.share,
    tokens: one.tokens,
    calls: one.steps,
    session_id: one.session_id,
    step: one.step,
  }));
  if (elsewhere > 0.000001)
    lines.push({
      key: ELSEWHERE,
      id: null,
      name: "(all other branches)",
      also: "not listed",
      cost: elsewhere,
      share: total > 0 ? elsewhere / total : 0,
      tokens: 0,
      calls: 0,
    });
  return lines;
}

export const SORTS = ["cost", "name", "tokens", "calls"] as const;
export type Sort = (typeof SORTS)[number];

export function sorted(
  lines: readonly Line[],
  sort: string | undefined,
): { lines: Line[]; id: Sort; down: boolean } {
  const down = !sort?.startsWith("-");
  const id = SORTS.find((one) => one === sort?.replace(/^-/, "")) ?? "cost";
  const by = (a: Line, b: Line) => (id === "name" ? b.name.localeCompare(a.name) : a[id] - b[id]);
  // The line for everything not listed always comes last, however large it is.
  const rest = (line: Line) => (line.key === ELSEWHERE ? 1 : 0);
  const inOrder = (a: Line, b: Line) => rest(a) - rest(b) || (down ? by(b, a) : by(a, b)) || b.cost - a.cost;
  return { lines: [...lines].sort(inOrder), id, down };
}

// --- the same as a file ---

/**
 * A cell that a spreadsheet would treat as a formula is made text by a leading quote (OWASP, CSV injection).
 */
export function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const HEADS = ["by", "id", "name", "also", "cost", "share", "tokens", "calls", "since", "until"];

export function csvOf(by: By, lines: readonly Line[], since: string, until: string): string {
  const rows = lines.map((one) =>
    [by, one.id ?? "", one.name, one.also, one.cost, one.share, one.tokens, one.calls, since, until]
      .map(cell)
      .join(","),
  );
  return `${[HEADS.join(","), ...rows].join("\r\n")}\r\n`;
}

export function jsonOf(by: By, lines: readonly Line[], since: string, until: string, total: number): string {
  const items = lines.map(({ key: _, ...line }) => line);
  return `${JSON.stringify({ by, since, until, total, items }, null, 2)}\n`;
}

export function fileName(by: By, until: string, kind: "csv" | "json"): string {
  return `costs-by-${by}-${until.slice(0, 16).replaceAll(/[:T]/g, "-")}.${kind}`;
}
