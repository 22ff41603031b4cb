// Liveness of an agent, by mark, word and tone: the same in the Registry and in the Scheduler.
import type { AgentItem } from "~/protocol/openapi";

export type Liveness = AgentItem["liveness"];
export const LIVENESS: readonly Liveness[] = ["healthy", "zombie", "unknown", "evicted"];
export const LIVES: Record<Liveness, { mark: string; word: string; tone: string; means: string }> = {
  healthy: { mark: "♥", word: "healthy", tone: "good", means: "heartbeat in time" },
  zombie: { mark: "!", word: "silent", tone: "alert", means: "heartbeat overdue" },
  unknown: { mark: "?", word: "no heartbeat yet", tone: "idle", means: "sends messages, but no heartbeat" },
  evicted: { mark: "×", word: "evicted", tone: "dead", means: "removed from the map; history is kept" },
};
