// Session status by mark, word and tone: the same in the list, on the session page and in panels.
import type { SessionItem } from "~/protocol/openapi";

export type SessionStatus = SessionItem["status"];

interface Sign {
  mark: string;
  word: string;
  tone: string;
  means: string;
}

export const STATUSES: Record<SessionStatus, Sign> = {
  running: { mark: "▸", word: "running", tone: "active", means: "agents are active" },
  waiting: {
    mark: "?",
    word: "waiting",
    tone: "blocked",
    means: "a message is held or a decision is pending",
  },
  paused: { mark: "‖", word: "paused", tone: "blocked", means: "an agent is paused by a person" },
  looping: { mark: "⟲", word: "looping", tone: "alert", means: "an agent is looping" },
  stuck: { mark: "…", word: "stuck", tone: "blocked", means: "no progress, and not ended" },
  ended: { mark: "✓", word: "ended", tone: "idle", means: "an agent sent its terminal step" },
};
