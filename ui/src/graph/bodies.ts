// Everything with a position on the map: agents, groups of them (a type in a cluster) and hulls. Each knows
// its present position, where it started from and its target, so that a morph can be interrupted at any
// moment and continues from where things are.
import type { Body } from "./edges";
import { glyph, WORST } from "./palette";
import type { Alarm, NodeRecord, NodeState, Point } from "./types";
import { AGENT_R } from "./zoom";

abstract class Moving implements Body {
  x = 0;
  y = 0;
  r = AGENT_R;
  dim = false;
  hidden = false;
  /** Not placed yet: its first position is taken without animation. */
  fresh = true;
  private sx = 0;
  private sy = 0;
  private sr = AGENT_R;
  private tx = 0;
  private ty = 0;
  private tr = AGENT_R;
  abstract hull: Point;

  constructor(readonly id: string) {}

  /** True if it has to move. */
  send(x: number, y: number, r: number): boolean {
    this.sx = this.x;
    this.sy = this.y;
    this.sr = this.r;
    this.tx = x;
    this.ty = y;
    this.tr = r;
    if (this.fresh) {
      this.fresh = false;
      this.sx = x;
      this.sy = y;
      this.sr = r;
    }
    this.step(0);
    return Math.abs(x - this.sx) + Math.abs(y - this.sy) + Math.abs(r - this.sr) > 0.5;
  }

  step(t: number): void {
    this.x = this.sx + (this.tx - this.sx) * t;
    this.y = this.sy + (this.ty - this.sy) * t;
    this.r = this.sr + (this.tr - this.sr) * t;
  }

  get goal(): { x: number; y: number; r: number } {
    return { x: this.tx, y: this.ty, r: this.tr };
  }
}

export class Agent extends Moving {
  hull: AgentGroup = LOST;
  group: AgentGroup = LOST;
  alarm: Alarm | null = null;
  glyph: string;
  label: string;

  constructor(public record: NodeRecord) {
    super(record.id);
    this.glyph = glyph(record.agent_type);
    this.label = record.name ?? record.id;
    this.take(record);
  }

  take(record: NodeRecord): void {
    if (record.agent_type !== this.record.agent_type) this.glyph = glyph(record.agent_type);
    this.record = record;
    this.label = record.name ?? record.id;
    this.alarm = worstAlarm(record.alarms);
  }

  get state(): NodeState {
    return this.record.state;
  }

  /** 0 to 1 for the ring: the logarithm of its message rate, full at 20 messages a second. */
  get load(): number {
    const rate = this.record.rate_per_s ?? 0;
    return rate <= 0 ? 0 : Math.min(1, Math.log1p(rate * 5) / Math.log1p(100));
  }
}

export interface Totals {
  agents: number;
  rate: number;
  cost: number;
  states: Record<NodeState, number>;
  worst: NodeState;
}

export const noTotals = (): Totals => ({
  agents: 0,
  rate: 0,
  cost: 0,
  states: { idle: 0, active: 0, alert_entropy: 0, schema_violation: 0, dead: 0, blocked: 0 },
  worst: "idle",
});

export class AgentGroup extends Moving {
  hull: AgentGroup = this;
  /** Relative to its centre. */
  outline: Float32Array = new Float32Array(0);
  agents: Agent[] = [];
  totals: Totals = noTotals();
  glyph = "";
  cluster: string | null = null;
  type: string | null = null;

  constructor(
    id: string,
    readonly level: "group" | "hull",
    public name: string,
  ) {
    super(id);
  }

  /** Sums its agents; true if its worst state changed. */
  sum(costOf: (bunch: AgentGroup) => number): boolean {
    const { worst } = this.totals;
    const made = noTotals();
    for (const agent of this.agents) {
      if (agent.hidden) continue;
      made.agents += 1;
      made.rate += agent.record.rate_per_s ?? 0;
      made.cost += agent.record.cost_per_min ?? 0;
      made.states[agent.state] += 1;
    }
    if (made.cost === 0) made.cost = costOf(this);
    made.worst = WORST.find((state) => made.states[state] > 0) ?? "idle";
    this.totals = made;
    return worst !== made.worst;
  }
}

const LOST = new AgentGroup("", "hull", "");

const GRAVE: readonly string[] = [
  "loop",
  "schema_violation",
  "silent",
  "kill",
  "held",
  "warning",
  "paused",
  "evicted",
];

export const gravity = (alarm: Alarm): number => {
  const at = GRAVE.indexOf(alarm.kind);
  return at < 0 ? GRAVE.length : at;
};

export function worstAlarm(alarms: readonly Alarm[] | undefined): Alarm | null {
  let worst: Alarm | null = null;
  for (const alarm of alarms ?? []) if (!worst || gravity(alarm) < gravity(worst)) worst = alarm;
  return worst;
}
