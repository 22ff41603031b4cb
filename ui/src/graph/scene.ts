// The picture to draw: positioned bodies, the links of the level shown, which agents are dimmed by find or
// focus and which are hidden. It combines model, layout and edges; it draws nothing and knows no canvas.
import { Agent, AgentGroup } from "./bodies";
import { type Body, type Link, lay, linked } from "./edges";
import { matches, type Term } from "./find";
import type { GeoPosition, Ground } from "./geo";
import { outline } from "./hulls";
import { Arrangement, type Form, HULL_PAD, type Member, type PlacedBody } from "./layout";
import type { Model } from "./model";
import { glyph } from "./palette";
import { type Focus, type Grouping, groupId, type Layer, type Level } from "./types";
import { type Box, boxOf } from "./zoom";

export type GroundOf = (
  hulls: ReadonlyMap<string, number>,
  places: ReadonlyMap<string, GeoPosition>,
) => Ground;

const EMPTY: Box = { x0: -400, y0: -260, x1: 400, y1: 260 };

export class Scene {
  readonly agents = new Map<string, Agent>();
  readonly groups = new Map<string, AgentGroup>();
  hulls = new Map<string, AgentGroup>();
  links: Link[] = [];
  /** The link that represents an edge's record at this level. */
  linkOf = new Map<string, Link>();
  linkById = new Map<string, Link>();
  ground: Ground | null = null;
  box: Box = EMPTY;
  level: Level = "agent";
  private readonly arrangement = new Arrangement();

  constructor(private readonly model: Model) {}

  /** Positions every agent in the layer; true if some have to move. */
  arrange(layer: Layer, grouping: Grouping, groundOf: GroundOf | null, form: Form): boolean {
    const by: Grouping = layer === "geographic" ? "cluster" : grouping;
    const members = this.members(by);
    this.ground = null;
    const placed = this.arrangement.arrange(
      `${layer} ${by}`,
      members,
      layer === "geographic" && groundOf ? (sizes) => this.onGround(sizes, groundOf).hulls : undefined,
      form,
    );
    return this.settle(members, placed, by);
  }

  private onGround(sizes: ReadonlyMap<string, number>, groundOf: GroundOf): Ground {
    const places = new Map<string, GeoPosition>();
    for (const key of sizes.keys()) {
      const region = this.model.region(key.slice("cluster:".length));
      if (region) places.set(key, region);
    }
    this.ground = groundOf(sizes, places);
    return this.ground;
  }

  private members(by: Grouping): Member[] {
    const made: Member[] = [];
    for (const [id, node] of this.model.nodes) {
      const outer = by === "type" ? `type:${node.agent_type ?? ""}` : `cluster:${node.cluster_id ?? ""}`;
      made.push({ id, inner: groupId(node.cluster_id, node.agent_type), outer });
    }
    return made;
  }

  private settle(members: readonly Member[], placed: PlacedBody, by: Grouping): boolean {
    let moves = false;
    const hulls = new Map<string, AgentGroup>();
    for (const [key, circle] of placed.hulls) {
      const hull =
        this.hulls.get(key) ?? new AgentGroup(key, "hull", key.slice(key.indexOf(":") + 1) || "(none)");
      hull.agents = [];
      hull.glyph = by === "type" ? glyph(hull.name) : "";
      if (by === "type") hull.type = key.slice("type:".length);
      else hull.cluster = key.slice("cluster:".length);
      moves = hull.send(circle.x, circle.y, circle.r) || moves;
      hulls.set(key, hull);
    }
    this.hulls = hulls;
    for (const key of this.groups.keys()) if (!placed.groups.has(key)) this.groups.delete(key);
    for (const id of this.agents.keys()) if (!this.model.nodes.has(id)) this.agents.delete(id);
    const inner = new Map<string, AgentGroup[]>();
    for (const { id, inner: key, outer } of members) {
      const hull = hulls.get(outer) as AgentGroup;
      let group = this.groups.get(key);
      if (!group) {
        group = new AgentGroup(key, "group", "");
        this.groups.set(key, group);
      }
      if (!inner.get(outer)?.includes(group)) {
        inner.set(outer, [...(inner.get(outer) ?? []), group]);
        moves = this.settleGroup(group, id, hull, placed, by) || moves;
      }
      moves = this.settleAgent(id, group, hull, placed) || moves;
    }
    for (const [key, groups] of inner) {
      const hull = hulls.get(key) as AgentGroup;
      const circles = groups.map((one) => one.goal);
      hull.outline = outline(circles, HULL_PAD, hull.goal);
    }
    const ground = (this.ground as Ground | null)?.box;
    this.box = ground ?? boxOf(placed.hulls.values()) ?? EMPTY;
    return moves;
  }

  private settleGroup(
    group: AgentGroup,
    id: string,
    hull: AgentGroup,
    placed: PlacedBody,
    by: Grouping,
  ): boolean {
    const node = this.model.nodes.get(id);
    group.cluster = node?.cluster_id ?? "";
    group.type = node?.agent_type ?? "";
    group.name = (by === "type" ? group.cluster : group.type) || "(none)";
    group.glyph = glyph(group.type);
    group.hull = hull;
    group.agents = [];
    const circle = placed.groups.get(group.id);
    return circle ? group.send(circle.x, circle.y, circle.r) : false;
  }

  private settleAgent(id: string, group: AgentGroup, hull: AgentGroup, placed: PlacedBody): boolean {
    const record = this.model.nodes.get(id);
    const at = placed.agents.get(id);
    if (!record || !at) return false;
    let agent = this.agents.get(id);
    if (!agent) {
      agent = new Agent(record);
      this.agents.set(id, agent);
    }
    agent.take(record);
    agent.group = group;
    agent.hull = hull;
    group.agents.push(agent);
    hull.agents.push(agent);
    return agent.send(at.x, at.y, agent.r);
  }

  /** New records for agents whose position does not change. */
  refresh(): void {
    for (const agent of this.agents.values()) {
      const record = this.model.nodes.get(agent.id);
      if (record && record !== agent.record) agent.take(record);
    }
  }

  /** Which agents are dimmed and which are hidden; true if anything changed. */
  filter(find: readonly Term[], hide: readonly Term[], focus: Focus | null): boolean {
    let changed = false;
    const set = (body: { dim: boolean; hidden: boolean }, dim: boolean, hidden: boolean) => {
      if (body.dim !== dim || body.hidden !== hidden) changed = true;
      body.dim = dim;
      body.hidden = hidden;
    };
    for (const agent of this.agents.values()) {
      const { record } = agent;
      const hidden = hide.length > 0 && matches(hide, record);
      const dim = (find.length > 0 && !matches(find, record)) || !inFocus(focus, agent);
      set(agent, dim, hidden);
    }
    for (const bunch of [...this.groups.values(), ...this.hulls.values()]) {
      set(
        bunch,
        bunch.agents.every((one) => one.dim || one.hidden),
        bunch.agents.every((one) => one.hidden),
      );
    }
    return changed;
  }

  /** Figures of groups and hulls; true if one of them shows another state. */
  sum(): boolean {
    const cost = (bunch: AgentGroup): number => {
      if (bunch.level === "group") return this.model.groups.get(bunch.id)?.cost_per_min ?? 0;
      let all = 0;
      for (const group of this.groups.values()) {
        if (group.hull === bunch) all += this.model.groups.get(group.id)?.cost_per_min ?? 0;
      }
      return all;
    };
    let changed = false;
    for (const group of this.groups.values()) changed = group.sum(cost) || changed;
    for (const hull of this.hulls.values()) changed = hull.sum(cost) || changed;
    return changed;
  }

  /** Rebuilds the links of a level. */
  link(level: Level): void {
    this.level = level;
    const bodyOf = (id: string): Body | null => {
      const agent = this.agents.get(id);
      if (!agent || agent.hidden) return null;
      return level === "agent" ? agent : level === "group" ? agent.group : agent.hull;
    };
    const made = linked(this.model.edges.values(), bodyOf, level === "agent");
    this.links = [...made.links.values()];
    this.linkById = made.links;
    this.linkOf = made.of;
    this.lay();
  }

  /** New figures for the existing links; true if one looks different. */
  relink(): boolean {
    for (const link of this.links) {
      for (let at = 0; at < link.records.length; at++) {
        const id = (link.records[at] as { id: string }).id;
        const record = this.model.edges.get(id);
        if (record) link.records[at] = record;
      }
    }
    let changed = false;
    for (const link of this.links) changed = link.sum() || changed;
    return changed;
  }

  lay(): void {
    for (const link of this.links) lay(link);
  }

  /** Moves all bodies to the fraction `t` of their way. */
  step(t: number): void {
    for (const hull of this.hulls.values()) hull.step(t);
    for (const group of this.groups.values()) group.step(t);
    for (const agent of this.agents.values()) agent.step(t);
    this.lay();
  }

  /** What can be picked at the level shown. */
  bodies(): Iterable<Agent | AgentGroup> {
    if (this.level === "agent") return this.agents.values();
    return this.level === "group" ? this.groups.values() : this.hulls.values();
  }

  /** The area that the bodies in focus will take. */
  focusBox(focus: Focus): Box | null {
    const circles: { x: number; y: number; r: number }[] = [];
    for (const group of this.groups.values()) {
      if (group.agents.some((one) => inFocus(focus, one))) circles.push(group.goal);
    }
    return boxOf(circles);
  }
}

export function inFocus(focus: Focus | null, agent: Agent): boolean {
  if (!focus) return true;
  const { cluster_id: cluster, agent_type: type } = agent.record;
  if (focus.cluster !== undefined && focus.cluster !== (cluster ?? "")) return false;
  return focus.group === undefined || focus.group === (type ?? "");
}
