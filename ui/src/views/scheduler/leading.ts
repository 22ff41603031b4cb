// How the schedule stands as a whole, in one word and one sentence. Pure.
import type { SchedulerItem } from "~/protocol/openapi";
import { span } from "~/widgets/words";

/** Later than this is no hiccup. */
const LATE_S = 10;

export function leading({ leader, lag_s, clock }: SchedulerItem): {
  mark: string;
  word: string;
  tone: string;
  says: string;
} {
  if (!leader?.is_live)
    return {
      mark: "×",
      word: "nobody leads",
      tone: "alert",
      says: "Nothing fires until a gateway leads; what is late then is made up for as each job says.",
    };
  if (clock.status !== "ok")
    return { mark: "!", word: "clock not believed", tone: "blocked", says: clock.text };
  if (lag_s > LATE_S)
    return {
      mark: "!",
      word: `${span(lag_s * 1000)} late`,
      tone: "blocked",
      says: "The leader has not caught up with what is due.",
    };
  return { mark: "✓", word: "on time", tone: "good", says: "" };
}
