// State of the scheduler in one word and one sentence. Pure.
import type { SchedulerItem } from "~/protocol/openapi";
import { span } from "~/widgets/format";

/** Longer than this is not a hiccup. */
const LATE_S = 10;

export function schedulerStatus({ leader, lag_s, clock }: SchedulerItem): {
  mark: string;
  word: string;
  tone: string;
  says: string;
} {
  if (!leader?.is_live)
    return {
      mark: "×",
      word: "no leader",
      tone: "alert",
      says: "No job runs until a gateway becomes leader; missed runs then follow each job's misfire policy.",
    };
  if (clock.status !== "ok") return { mark: "!", word: "clock jump", tone: "blocked", says: clock.text };
  if (lag_s > LATE_S)
    return {
      mark: "!",
      word: `${span(lag_s * 1000)} late`,
      tone: "blocked",
      says: "The leader is behind schedule.",
    };
  return { mark: "✓", word: "on time", tone: "good", says: "" };
}
