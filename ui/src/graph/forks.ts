// Forks: one step became several. Dots burst from the parent to its children for a moment, then a mark "1→3"
// stays next to the parent for some seconds. A fork reported again with more children bursts again.
import type { ForkRecord } from "./types";

export const BURST_MS = 900;
export const STAYS_MS = 7_000;
export const FADES_MS = 1_500;
const MAX_FORKS = 24;

export interface Burst {
  id: string;
  parent: string;
  children: string[];
  count: number;
  begun: number;
}

export class Forks {
  private held: Burst[] = [];

  take(records: readonly ForkRecord[], nowMs: number): void {
    for (const record of records) {
      if (!record.agent_id) continue;
      const before = this.held.find((one) => one.id === record.id);
      if (before && before.count >= record.children) continue;
      this.held = this.held.filter((one) => one !== before);
      this.held.push({
        id: record.id,
        parent: record.agent_id,
        children: [...new Set(record.to)],
        count: record.children,
        begun: nowMs,
      });
    }
    if (this.held.length > MAX_FORKS) this.held = this.held.slice(-MAX_FORKS);
  }

  step(nowMs: number): void {
    if (this.held.some((one) => nowMs - one.begun >= STAYS_MS)) {
      this.held = this.held.filter((one) => nowMs - one.begun < STAYS_MS);
    }
  }

  get all(): readonly Burst[] {
    return this.held;
  }

  /** Some fork is bursting or fading; between the two it is static. */
  moves(nowMs: number): boolean {
    return this.held.some((one) => nowMs - one.begun < BURST_MS || nowMs - one.begun > STAYS_MS - FADES_MS);
  }

  clear(): void {
    this.held = [];
  }
}
