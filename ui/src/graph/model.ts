// The map's records, and what a change of them means for the picture: which agents exist, what looks
// different, who has sent something. Items are replaced whole, never merged (docs/guides/live.md); nothing
// the gateway reports is derived here.
import type { Change, LiveRecord, Picture } from "~/live/records";
import { type Sign, STATES, signed } from "./palette";
import {
  type EdgeRecord,
  edgeId,
  type FleetPicture,
  type ForkRecord,
  type GroupRecord,
  type NodeRecord,
  type NodeState,
  type Region,
  type SignRecord,
} from "./types";

export interface News {
  /** An agent joined, left, or changed type or cluster: positions may change. */
  members: boolean;
  nodes: boolean;
  /** Edges were added or removed. */
  edgeSet: boolean;
  edges: boolean;
  groups: boolean;
  /** Agents that sent, with the number of messages. */
  sent: { id: string; count: number }[];
  /** Edges whose message count grew. */
  rose: string[];
  forks: ForkRecord[];
}

const nothing = (): News => ({
  members: false,
  nodes: false,
  edgeSet: false,
  edges: false,
  groups: false,
  sent: [],
  rose: [],
  forks: [],
});

/** All records of a picture, as a change that replaces everything. */
export function wholeOf(picture: Picture | null): Change {
  const put: LiveRecord[] = [];
  for (const kind of ["sign", "node", "edge", "group", "cluster"]) {
    for (const record of picture?.of(kind).values() ?? []) put.push(record);
  }
  return { whole: true, put, dropped: [] };
}

export class Model {
  readonly nodes = new Map<string, NodeRecord>();
  readonly edges = new Map<string, EdgeRecord>();
  readonly groups = new Map<string, GroupRecord>();
  readonly clusters = new Map<string, GroupRecord>();
  signs: Record<NodeState, Sign> = STATES;
  private outgoing: Map<string, EdgeRecord[]> | null = null;

  put(change: Change): News {
    const news = nothing();
    if (change.whole) this.keepOnly(change.put, news);
    for (const record of change.put) this.take(record, news, change.whole);
    for (const { kind, id } of change.dropped) this.drop(kind, id, news);
    if (news.edges || news.edgeSet) this.outgoing = null;
    return news;
  }

  /** A whole answer of GET /v1/fleet, e.g. of another time. */
  show(answer: FleetPicture): News {
    const put: LiveRecord[] = [];
    const as = (kind: string, id: string, record: object) =>
      put.push({ ...record, kind, id, version: 0 } as LiveRecord);
    for (const node of answer.nodes) as("node", node.id, node);
    for (const group of answer.groups)
      as(group.id.startsWith("cluster:") ? "cluster" : "group", group.id, group);
    for (const edge of answer.edges) as("edge", edge.id ?? edgeId(edge), edge);
    return this.put({ whole: true, put, dropped: [] });
  }

  /** Edges an agent's next message may take: those with traffic in the last minute. */
  busyFrom(agentId: string): readonly EdgeRecord[] {
    if (!this.outgoing) {
      this.outgoing = new Map();
      for (const edge of this.edges.values()) {
        if (edge.rate_per_s <= 0) continue;
        const held = this.outgoing.get(edge.from);
        if (held) held.push(edge);
        else this.outgoing.set(edge.from, [edge]);
      }
    }
    return this.outgoing.get(agentId) ?? [];
  }

  region(cluster: string | null): Region | null {
    const known = this.clusters.get(`cluster:${cluster ?? ""}`)?.region;
    if (known) return known;
    for (const group of this.groups.values())
      if (group.cluster_id === cluster && group.region) return group.region;
    return null;
  }

  private keepOnly(records: readonly LiveRecord[], news: News): void {
    const here = new Set(records.map((one) => `${one.kind} ${one.id}`));
    const maps = { node: this.nodes, edge: this.edges, group: this.groups, cluster: this.clusters };
    for (const [kind, held] of Object.entries(maps)) {
      for (const id of [...held.keys()]) if (!here.has(`${kind} ${id}`)) this.drop(kind, id, news);
    }
  }

  private take(record: LiveRecord, news: News, whole: boolean): void {
    switch (record.kind) {
      case "node":
        this.takeNode(record as unknown as NodeRecord, news, whole);
        break;
      case "edge":
        this.takeEdge(record as unknown as EdgeRecord, news, whole);
        break;
      case "group":
        this.groups.set(record.id, record as unknown as GroupRecord);
        news.groups = true;
        break;
      case "cluster":
        this.takeCluster(record as unknown as GroupRecord, news);
        break;
      case "fork":
        // A snapshot includes past forks; only those that happen now are animated.
        if (!whole) news.forks.push(record as unknown as ForkRecord);
        break;
      case "sign":
        this.signs = signed(this.signs, record as unknown as SignRecord);
        break;
    }
  }

  private takeNode(node: NodeRecord, news: News, whole: boolean): void {
    const before = this.nodes.get(node.id);
    this.nodes.set(node.id, node);
    news.nodes = true;
    if (!before) news.members = true;
    else {
      if (before.agent_type !== node.agent_type || before.cluster_id !== node.cluster_id) news.members = true;
      const count = (node.messages ?? 0) - (before.messages ?? 0);
      if (count > 0 && !whole) news.sent.push({ id: node.id, count });
    }
  }

  private takeEdge(edge: EdgeRecord, news: News, whole: boolean): void {
    const before = this.edges.get(edge.id);
    this.edges.set(edge.id, edge);
    news.edges = true;
    if (!before) news.edgeSet = true;
    else if (edge.messages > before.messages && !whole) news.rose.push(edge.id);
  }

  private takeCluster(cluster: GroupRecord, news: News): void {
    const before = this.clusters.get(cluster.id)?.region;
    this.clusters.set(cluster.id, cluster);
    news.groups = true;
    if (before?.lat !== cluster.region?.lat || before?.lon !== cluster.region?.lon) news.members = true;
  }

  private drop(kind: string, id: string, news: News): void {
    if (kind === "node" && this.nodes.delete(id)) news.members = news.nodes = true;
    else if (kind === "edge" && this.edges.delete(id)) news.edgeSet = news.edges = true;
    else if (kind === "group" && this.groups.delete(id)) news.groups = true;
    else if (kind === "cluster" && this.clusters.delete(id)) news.groups = news.members = true;
  }
}
