// Where in a cron expression the gateway found an error, so that it can be pointed at. Pure.
import { noun } from "~/plural";

const FIELDS = ["minute", "hour", "day-of-month", "month", "day-of-week"] as const;
export const NAMES: Record<string, string> = {
  second: "second",
  minute: "minute",
  hour: "hour",
  "day-of-month": "day of month",
  month: "month",
  "day-of-week": "day of week",
};

export interface Field {
  name: string;
  text: string;
  start: number;
}

/** The fields of an expression by position; with six, the first is seconds. */
export function fieldsOf(cron: string): Field[] {
  const found = [...cron.matchAll(/\S+/g)];
  const names = found.length === 6 ? ["second", ...FIELDS] : FIELDS;
  return found.map((match, n) => ({
    name: names[n] ?? "too many",
    text: match[0],
    start: match.index,
  }));
}

export interface CronFault {
  start: number;
  length: number;
  says: string;
}

const WANTED: Record<string, string> = {
  second: "0–59",
  minute: "0–59",
  hour: "0–23",
  "day-of-month": "a day such a month has, L, LW",
  month: "1–12 or JAN–DEC",
  "day-of-week": "0–7 or SUN–SAT (0 and 7 are Sunday)",
};

/** The field a refusal is about; null if it concerns no single field. */
export function pointAt(cron: string, problem: string): CronFault | null {
  const fields = fieldsOf(cron);
  const named = /invalid field: (\S+)/.exec(problem)?.[1];
  const bad = fields.find(({ name }) => name === named);
  if (bad)
    return {
      start: bad.start,
      length: bad.text.length,
      says: `${NAMES[bad.name] ?? bad.name}: “${bad.text}” is invalid; use ${WANTED[bad.name] ?? "a number"}, * or a list`,
    };
  if (!/five fields/.test(problem)) return null;
  const extra = fields[6];
  if (extra)
    return {
      start: extra.start,
      length: cron.length - extra.start,
      says: `${fields.length} fields; a cron expression has five, or six with seconds first`,
    };
  const missing = FIELDS.slice(fields.length).map((name) => NAMES[name]);
  return {
    start: cron.trimEnd().length,
    length: 1,
    says: `${missing.join(", ")} ${noun(missing.length, "is", "are")} missing`,
  };
}

/** The pointer as a line of text under the other: `     ^^`. */
export function underline({ start, length }: CronFault): string {
  return " ".repeat(start) + "^".repeat(Math.max(1, length));
}
