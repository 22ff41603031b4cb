// How the gateway parsed a query and why a hit matched, as text. Positions are in code points (Python's
// characters); JavaScript counts UTF-16 units, so they are converted here. Pure.
import type { ProblemItem, QuestionItem, SearchHit, Snippet } from "~/protocol/openapi";
import { exact } from "~/widgets/clock";
import { inert } from "~/widgets/inert";

export type Mode = "hybrid" | "text" | "semantic";

const OPS: Record<string, string> = { "<": "below", "<=": "at most", ">": "above", ">=": "at least" };
const list = (words: readonly string[], join: string) =>
  words.length < 2
    ? (words[0] ?? "")
    : `${words.slice(0, -1).join(", ")} ${join} ${words[words.length - 1] as string}`;
const quoted = (text: string) => `“${text}”`;

/** Whether the meaning is searched for with the very same words. */
function isSame(query: QuestionItem): boolean {
  const words = query.words.flat().map((one) => one.replace(/\*$/, ""));
  return words.join(" ") === (query.meaning ?? "").toLowerCase().replaceAll("*", "");
}

/** One sentence: what is searched. */
export function sentenceOf(query: QuestionItem, mode: Mode, semantic: string): string {
  const clauses: string[] = [];
  if (query.words.length > 0 && mode !== "semantic")
    clauses.push(
      `with ${list(
        query.words.map((any) => list(any.map(quoted), "or")),
        "and",
      )}`,
    );
  const likes = query.meaning && mode !== "text" && semantic !== "not_available";
  if (likes)
    clauses.push(
      clauses.length === 0
        ? `with a meaning similar to ${quoted(query.meaning ?? "")}`
        : isSame(query)
          ? "or with similar meaning"
          : `or similar to ${quoted(query.meaning ?? "")}`,
    );
  if (query.without.length > 0) clauses.push(`without ${list(query.without.map(quoted), "or")}`);
  for (const { field, op, values, negated } of query.filters) {
    const not = negated ? "not " : "";
    const what = op === "in" ? list(values.map(String), "or") : `${OPS[op]} ${values[0]}`;
    clauses.push(field === "agent" ? `${not}by ${what}` : `${field} ${not}${what}`);
  }
  if (query.since) clauses.push(`since ${exact(query.since)}`);
  if (query.until) clauses.push(`until ${exact(query.until)}`);
  const ranked = (query.words.length > 0 && mode !== "semantic") || likes;
  return clauses.length === 0
    ? "All messages, newest first."
    : `Messages ${clauses.join(", ")}; ${ranked ? "best first" : "newest first"}.`;
}

/** From code points to UTF-16 units. */
export function unitsOf(text: string, points: number): number {
  let at = 0;
  for (let n = 0; n < points && at < text.length; n += 1) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

export interface MarkedError {
  before: string;
  bad: string;
  after: string;
  sentence: string;
}

const AROUND = 28;

/** A parse error with its context, to be shown under the very characters. */
export function pointed(question: string, problem: ProblemItem): MarkedError {
  const start = unitsOf(question, problem.start);
  const end = unitsOf(question, problem.end);
  const from = Math.max(0, start - AROUND);
  const to = Math.min(question.length, end + AROUND);
  return {
    before: inert((from > 0 ? "…" : "") + question.slice(from, start)),
    bad: inert(question.slice(start, end)),
    after: inert(question.slice(end, to) + (to < question.length ? "…" : "")),
    sentence: problem.sentence,
  };
}

export interface Run {
  text: string;
  marked: boolean;
}

/** A quote split at its matches; made inert character by character, so that the positions stay valid. */
export function runsOf({ text, matches }: Pick<Snippet, "text" | "matches">): Run[] {
  const runs: Run[] = [];
  let at = 0;
  const push = (end: number, marked: boolean) => {
    if (end > at) runs.push({ text: inert(text.slice(at, end)).replace(/\s+/g, " "), marked });
    at = Math.max(at, end);
  };
  for (const [from, to] of matches) {
    push(unitsOf(text, from), false);
    push(unitsOf(text, to), true);
  }
  push(text.length, false);
  return runs;
}

/** Why it matched: short for the line, complete on hover. */
export function whyOf({ why }: Pick<SearchHit, "why">): { short: string; whole: string } {
  const short: string[] = [];
  const whole: string[] = [];
  if (why.text_rank !== null) {
    short.push(why.words.length > 0 ? `“${why.words.join("”, “")}”` : "words");
    whole.push(
      `contains ${list(why.words.map(quoted), "and") || "the words"} (rank ${why.text_rank} by words)`,
    );
  }
  if (why.semantic_rank !== null && why.likeness !== null) {
    const share = `${Math.round(why.likeness * 100)} %`;
    short.push(`≈ ${share}`);
    whole.push(`similar meaning: ${share} (rank ${why.semantic_rank} by meaning)`);
  }
  if (short.length === 0) return { short: "filter", whole: "matches the filters; not ranked" };
  return { short: short.join(" "), whole: whole.join("; ") };
}
