// How long payloads are kept, as a form and as what will be lost. Pure.
import type { RetentionAnswer } from "~/protocol/openapi";
import type { Values } from "../parts/useForm";

export const MOST_DAYS = 36_500;
/** What the clock shreds at most in a minute, of one tenant. */
const A_MINUTE = 5_000;

export function valuesOf({ days, thoughts }: Pick<RetentionAnswer, "days" | "thoughts">): Values {
  return { keep: days === null ? "forever" : "days", days: days === null ? "90" : String(days), thoughts };
}

/** null: for ever; undefined: not a number of days. */
export function daysOf(values: Values): number | null | undefined {
  if (values.keep === "forever") return null;
  const days = Number(String(values.days).trim());
  return Number.isInteger(days) && days >= 1 && days <= MOST_DAYS ? days : undefined;
}

export function before(days: number, nowMs: number): Date {
  return new Date(nowMs - days * 86_400_000);
}

/** What is to be typed to confirm. */
export const typedFor = (days: number) => `shred after ${days} ${days === 1 ? "day" : "days"}`;

/** Shredding is done at once where there is something, and cannot be undone. */
export function loses(was: number | null, days: number | null, thoughts: boolean, had: boolean): boolean {
  return days !== null && (was === null || days < was || (thoughts && !had));
}

export function lossSentence(hits: number, capped: boolean): string {
  if (hits === 0) return "Nothing is that old yet: the first is shredded when it comes of age.";
  const minutes = Math.ceil(hits / A_MINUTE);
  const many = `${capped ? "at least " : ""}${hits.toLocaleString("en")}`;
  const lasts = minutes <= 1 ? "within two minutes" : `over some ${minutes} minutes, the oldest first`;
  return `${many} archived ${hits === 1 ? "message loses its" : "messages lose their"} content ${lasts}.`;
}
