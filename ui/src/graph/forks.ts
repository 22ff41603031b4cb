// One step became several: for a moment dots burst from the parent to its children, then a mark "1→3" stays
// beside the parent for some seconds. A fork told again with more children bursts again.
import type { ForkRecord } from "./types";

export const BURST_MS = 900;
export const STAYS_MS = 7_000;
export const FADES_MS = 1_500;
const MOST = 24;

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
    if (this.held.length > MOST) this.held = this.held.slice(-MOST);
  }

  step(nowMs: number): void {
    if (this.held.some((one) => nowMs - one.begun >= STAYS_MS)) {
      this.held = this.held.filter((one) => nowMs - one.begun < STAYS_MS);
    }
  }

  get all(): readonly Burst[] {
    return this.held;
  }

  /** Something of it bursts or fades; between the two it stands still. */
  moves(nowMs: number): boolean {
    return this.held.some((one) => nowMs - one.begun < BURST_MS || nowMs - one.begun > STAYS_MS - FADES_MS);
  }

  clear(): void {
    this.held = [];
  }
}
