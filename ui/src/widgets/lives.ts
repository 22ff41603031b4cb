// How an agent's heart is heard, by mark, word and tone: the same in the Registry and in the Scheduler.
import type { AgentItem } from "~/protocol/openapi";

export type Liveness = AgentItem["liveness"];
export const LIVENESS: readonly Liveness[] = ["healthy", "zombie", "unknown", "evicted"];
export const LIVES: Record<Liveness, { mark: string; word: string; tone: string; means: string }> = {
  healthy: { mark: "♥", word: "healthy", tone: "good", means: "its heartbeat was heard in time" },
  zombie: { mark: "!", word: "silent", tone: "alert", means: "its heartbeat is overdue" },
  unknown: { mark: "?", word: "never heard", tone: "idle", means: "it sends messages, but no heartbeat" },
  evicted: { mark: "×", word: "evicted", tone: "dead", means: "it was taken out of the map; history stays" },
};
