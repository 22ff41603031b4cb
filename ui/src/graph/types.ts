// The records the map is drawn from, as the topic `fleet` and GET /v1/fleet send them, and the types the
// engine and its host share. Above 300 agents a node comes without name, colour, mark and cost: those are
// optional here.
import type { LiveRecord } from "~/live/records";

export type NodeState = "idle" | "active" | "alert_entropy" | "schema_violation" | "dead" | "blocked";
export type EdgeStatus = "Healthy" | "Alert" | "Blocked";
export type Layer = "logical" | "geographic";
export type Grouping = "type" | "cluster";
export type Level = "cluster" | "group" | "agent";
export type Severity = "critical" | "warning";

export interface Alarm {
  kind: string;
  severity: Severity;
  text: string | null;
  since?: string | null;
  session_id?: string | null;
  detector?: string | null;
  entropy_score?: number | null;
  agent_id?: string;
}

export interface Region {
  region: string;
  name: string;
  lat: number;
  lon: number;
}

export interface NodeRecord {
  id: string;
  name?: string | null;
  agent_type: string | null;
  cluster_id: string | null;
  state: NodeState;
  rule?: number;
  reason?: string | null;
  liveness?: string;
  ghost?: boolean;
  last_seen_at?: string | null;
  messages?: number;
  rate_per_s?: number;
  failures_60s?: number;
  cost_per_min?: number;
  alarms?: Alarm[];
  intent?: string | null;
  region?: Region | null;
}

export interface EdgeRecord {
  id: string;
  from: string;
  to: string | null;
  address?: string | null;
  kinds?: string[];
  messages: number;
  rate_per_s: number;
  failures?: number;
  latency_p50_ms?: number | null;
  latency_p95_ms?: number | null;
  latency_mean_ms?: number | null;
  unacknowledged?: number;
  status: EdgeStatus;
  reason?: string | null;
}

export interface GroupRecord {
  id: string;
  name: string;
  cluster_id: string | null;
  agent_type: string | null;
  agents: number;
  states?: Partial<Record<NodeState, number>>;
  state: NodeState;
  rate_per_s: number;
  cost_per_min: number;
  region?: Region | null;
  alarms?: Alarm[];
  alarms_count?: number;
}

export interface ForkRecord {
  id: string;
  agent_id: string | null;
  to: string[];
  children: number;
  session_id?: string | null;
  at?: string;
}

export interface SignRecord {
  id: string;
  state: NodeState;
  colour: string;
  mark: string;
  shape: string;
  flashing: boolean;
}

/** The part of a GET /v1/fleet response that `show` uses. */
export interface FleetPicture {
  nodes: NodeRecord[];
  groups: GroupRecord[];
  edges: (Omit<EdgeRecord, "id"> & { id?: string })[];
}

export interface Focus {
  cluster?: string;
  group?: string;
}

export type ThingKind = "node" | "edge" | "group";

export interface MapObject {
  kind: ThingKind;
  id: string;
}

export interface Hit {
  kind: ThingKind | "alarm";
  id: string;
  /** CSS pixels in the canvas. */
  x: number;
  y: number;
  /** Record ids, where several edges are drawn as one. */
  edges?: string[];
  from?: string;
  to?: string;
}

export interface Point {
  x: number;
  y: number;
}

export interface Circle extends Point {
  r: number;
}

export const edgeId = (edge: { from: string; to: string | null; address?: string | null }): string =>
  `${edge.from} → ${edge.to ?? edge.address ?? ""}`;

export const groupId = (cluster: string | null, type: string | null): string =>
  `group:${cluster ?? ""}/${type ?? ""}`;

export const asNode = (record: LiveRecord): NodeRecord => record as unknown as NodeRecord;
