// Retention form and the preview of what will be shredded. Pure.

import { noun, plural } from "~/plural";
import type { RetentionAnswer } from "~/protocol/openapi";
import type { Values } from "../parts/useForm";

export const MAX_DAYS = 36_500;
/** Messages of one tenant shredded per minute at most. */
const A_MINUTE = 5_000;

export function valuesOf({ days, thoughts }: Pick<RetentionAnswer, "days" | "thoughts">): Values {
  return { keep: days === null ? "forever" : "days", days: days === null ? "90" : String(days), thoughts };
}

/** null: forever; undefined: not a number of days. */
export function daysOf(values: Values): number | null | undefined {
  if (values.keep === "forever") return null;
  const days = Number(String(values.days).trim());
  return Number.isInteger(days) && days >= 1 && days <= MAX_DAYS ? days : undefined;
}

export function before(days: number, nowMs: number): Date {
  return new Date(nowMs - days * 86_400_000);
}

/** The text to type for confirmation. */
export const typedFor = (days: number) => `shred after ${plural(days, "day")}`;

/** Whether saving deletes data, which cannot be undone. */
export function loses(was: number | null, days: number | null, thoughts: boolean, had: boolean): boolean {
  return days !== null && (was === null || days < was || (thoughts && !had));
}

export function lossSentence(hits: number, capped: boolean): string {
  if (hits === 0) return "No message is that old yet: the first is shredded at that age.";
  const minutes = Math.ceil(hits / A_MINUTE);
  const many = `${capped ? "at least " : ""}${hits.toLocaleString("en")}`;
  const lasts = minutes <= 1 ? "within two minutes" : `over some ${minutes} minutes, the oldest first`;
  return `${many} archived ${noun(hits, "message loses its", "messages lose their")} content ${lasts}.`;
}
