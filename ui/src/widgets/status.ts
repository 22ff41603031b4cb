// How a session stands, by mark, word and tone: the same in the list, in the drill-down and beside any view.
import type { SessionItem } from "~/protocol/openapi";

export type SessionStatus = SessionItem["status"];

interface Sign {
  mark: string;
  word: string;
  tone: string;
  means: string;
}

export const STATUSES: Record<SessionStatus, Sign> = {
  running: { mark: "▸", word: "running", tone: "active", means: "its agents are at work" },
  waiting: { mark: "?", word: "waiting", tone: "blocked", means: "something is held or waits for a person" },
  paused: { mark: "‖", word: "paused", tone: "blocked", means: "a person has paused an agent in it" },
  looping: { mark: "⟲", word: "looping", tone: "alert", means: "an agent goes in circles" },
  stuck: { mark: "…", word: "stuck", tone: "blocked", means: "nothing has moved, and it has not ended" },
  ended: { mark: "✓", word: "ended", tone: "idle", means: "an agent said its last word" },
};
