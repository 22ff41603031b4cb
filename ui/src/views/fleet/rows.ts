// Agents as rows of the list: from live records, a replayed response, or both (above 300 agents the live feed
// sends only what the map draws; the rest comes from the response). Pure; sorting keeps ties in name order.
import { WORST } from "~/graph";
import type { FleetNode } from "~/protocol/openapi";
import { type NodeState, STATE_SIGNS } from "~/widgets/format";
import type { Order } from "./viewState";

export type Alarm = FleetNode["alarms"][number];

/** A `node` record of the topic `fleet`; what is optional is left out above 300 agents. */
export interface NodeRecord {
  id: string;
  name?: string;
  agent_type: string | null;
  cluster_id: string | null;
  state: NodeState;
  reason?: string;
  liveness: FleetNode["liveness"];
  last_seen_at: string | null;
  rate_per_s: number;
  failures_60s?: number;
  cost_per_min?: number;
  alarms?: Alarm[];
}

export interface Row {
  id: string;
  name: string;
  type: string;
  cluster: string;
  state: NodeState;
  reason: string;
  liveness: FleetNode["liveness"];
  rate: number;
  /** undefined: not reported. */
  cost: number | undefined;
  failures: number | undefined;
  alarms: Alarm[];
  seen: string | null;
}

export function rowOf(node: NodeRecord, full?: FleetNode): Row {
  return {
    id: node.id,
    name: node.name ?? full?.name ?? node.id,
    type: node.agent_type ?? "",
    cluster: node.cluster_id ?? "",
    state: node.state,
    reason: node.reason ?? full?.reason ?? STATE_SIGNS[node.state].word,
    liveness: node.liveness,
    rate: node.rate_per_s,
    cost: node.cost_per_min ?? full?.cost_per_min,
    failures: node.failures_60s ?? full?.failures_60s,
    alarms: node.alarms ?? [],
    seen: node.last_seen_at,
  };
}

const LIVELINESS: readonly Row["liveness"][] = ["evicted", "zombie", "unknown", "healthy"];

type Value = string | number;
export interface Column {
  id: string;
  title: string;
  /** Figures are right-aligned and sort by the largest first. */
  figure: boolean;
  value: (row: Row) => Value;
}

export const COLUMNS: readonly Column[] = [
  { id: "state", title: "State", figure: false, value: (row) => WORST.indexOf(row.state) },
  { id: "name", title: "Agent", figure: false, value: (row) => row.name },
  { id: "type", title: "Type", figure: false, value: (row) => row.type },
  { id: "cluster", title: "Cluster", figure: false, value: (row) => row.cluster },
  { id: "liveness", title: "Liveness", figure: false, value: (row) => LIVELINESS.indexOf(row.liveness) },
  { id: "rate", title: "msg/s", figure: true, value: (row) => row.rate },
  { id: "cost", title: "$/min", figure: true, value: (row) => row.cost ?? -1 },
  { id: "failures", title: "Failures, 60 s", figure: true, value: (row) => row.failures ?? -1 },
  { id: "alarms", title: "Alerts", figure: true, value: (row) => row.alarms.length },
  { id: "seen", title: "Last seen", figure: true, value: (row) => (row.seen ? Date.parse(row.seen) : 0) },
];

function compared(a: Value, b: Value): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
}

/** The input array is never changed; an unknown order keeps names in order. */
export function ordered(rows: readonly Row[], order: Order): Row[] {
  const column = COLUMNS.find((one) => one.id === order.by);
  const way = order.down ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: column ? column.value(row) : 0 }));
  keyed.sort((a, b) => way * compared(a.key, b.key) || a.row.name.localeCompare(b.row.name, "en"));
  return keyed.map(({ row }) => row);
}

/** The alert to act on: a loop with its session first. */
export function worstAlarm(alarms: readonly Alarm[]): Alarm | null {
  const rank = (one: Alarm) => (one.kind === "loop" ? 0 : one.severity === "critical" ? 1 : 2);
  return [...alarms].sort((a, b) => rank(a) - rank(b))[0] ?? null;
}
