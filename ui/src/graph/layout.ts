// Positions of agents, groups and hulls. Deterministic from ids alone: the same mesh gives the same picture
// after a reload and on another machine, and traffic never moves an agent. An agent keeps its seat while it
// is there; a new one takes a free seat and moves no other; sizes grow in steps, so that most joins change no
// circle. Agents sit in rings within their group (type in cluster), groups are packed into hulls, hulls are
// spread without overlap.
import { forceCollide, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";
import { packEnclose, packSiblings } from "d3-hierarchy";
import { hash, mix } from "./nameHash";
import type { Circle, Point } from "./types";
import { AGENT_R } from "./zoom";

/** Wider than high: a name is drawn below each agent. */
export const CELL_X = AGENT_R * 4.9;
export const CELL_Y = AGENT_R * 3.8;
const FOOTPRINT = AGENT_R * 1.7;
const GROUP_PAD = AGENT_R * 0.4;
export const HULL_PAD = AGENT_R * 1.1;
const HULL_GAP = AGENT_R * 3.8;
const TICKS = 180;

export interface Member {
  id: string;
  /** Group: type in cluster. */
  inner: string;
  /** Hull it belongs to in this arrangement. */
  outer: string;
}

/** Offsets of a hull's parts from its centre. */
export interface Hull {
  r: number;
  groups: Map<string, Circle>;
}

// --- seats in a group ---

const seats: Point[] = [{ x: 0, y: 0 }];
const rims = new Map<number, Circle>();

/** The k-th seat: rings of six, twelve, eighteen … around the first. */
export function seat(k: number): Point {
  while (seats.length <= k) {
    const ring = Math.ceil((Math.sqrt(12 * seats.length + 9) - 3) / 6 - 1e-9);
    const first = 3 * ring * (ring - 1) + 1;
    for (let at = 0; at < 6 * ring; at++) seats[first + at] = onRing(ring, at);
  }
  return seats[k] as Point;
}

function onRing(ring: number, at: number): Point {
  const side = Math.floor(at / ring);
  const along = at % ring;
  const corner = (side * Math.PI) / 3;
  const next = corner + Math.PI / 3;
  const part = along / ring;
  return {
    x: CELL_X * ring * (Math.cos(corner) * (1 - part) + Math.cos(next) * part),
    y: CELL_Y * ring * (Math.sin(corner) * (1 - part) + Math.sin(next) * part),
  };
}

/** Seats reserved for a group of `count`: in steps, so that a join seldom changes it. */
export function roomFor(count: number): number {
  if (count <= 4) return Math.max(1, count);
  if (count <= 7) return 7;
  let step = 12;
  while (step < count) step = Math.ceil(step * 1.5);
  return step;
}

/** The circle around the first seats of a group. */
export function rim(capacity: number): Circle {
  let found = rims.get(capacity);
  if (!found) {
    const around = Array.from({ length: capacity }, (_, k) => ({ ...seat(k), r: FOOTPRINT }));
    const { x, y, r } = packEnclose(around);
    found = { x, y, r: r + GROUP_PAD };
    rims.set(capacity, found);
  }
  return found;
}

/**
 * Seats of one group. An agent that has a seat keeps it. New agents choose in the order of their names'
 * hashes, each the free seat it prefers (rendezvous hashing), so that one more or one fewer agent changes
 * little after a reload too.
 */
export class Seats {
  private readonly of = new Map<string, number>();

  take(ids: readonly string[]): ReadonlyMap<string, number> {
    const here = new Set(ids);
    for (const id of this.of.keys()) if (!here.has(id)) this.of.delete(id);
    const taken = new Set(this.of.values());
    const coming = ids.filter((id) => !this.of.has(id)).map((id) => ({ id, number: hash(id) }));
    coming.sort((a, b) => a.number - b.number || (a.id < b.id ? -1 : 1));
    const free: number[] = [];
    for (let k = 0; free.length < coming.length; k++) if (!taken.has(k)) free.push(k);
    for (const { id, number } of coming) {
      let best = 0;
      let liking = -1;
      for (let at = 0; at < free.length; at++) {
        const likes = mix(number ^ Math.imul((free[at] as number) + 1, 0x9e3779b1));
        if (likes > liking) {
          liking = likes;
          best = at;
        }
      }
      this.of.set(id, free[best] as number);
      free.splice(best, 1);
    }
    return this.of;
  }

  get capacity(): number {
    let most = 0;
    for (const k of this.of.values()) if (k >= most) most = k + 1;
    return roomFor(most);
  }
}

// --- groups in a hull ---

/** Circles of the groups in a hull, the largest in the centre; the same for the same sizes. */
export function packed(groups: ReadonlyMap<string, number>): Hull {
  const made = [...groups].map(([key, capacity]) => ({ key, x: 0, y: 0, r: rim(capacity).r }));
  made.sort((a, b) => b.r - a.r || (a.key < b.key ? -1 : 1));
  packSiblings(made);
  const whole = made.length > 0 ? packEnclose(made) : { x: 0, y: 0, r: AGENT_R };
  const offsets = new Map(made.map((one) => [one.key, { x: one.x - whole.x, y: one.y - whole.y, r: one.r }]));
  return { r: whole.r + HULL_PAD, groups: offsets };
}

// --- hulls on the plane ---

interface Floating extends SimulationNodeDatum {
  key: string;
  r: number;
}

/**
 * Centres of hulls on the plane, wider than high like screens, or higher than wide like phones. A hull stays
 * where it was unless it grew into a neighbour; a new one is placed around them.
 */
export function spread(
  hulls: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, Circle>,
  form: Form = "even",
): Map<string, Circle> {
  if (form === "tall") return turned(spread(hulls, turned(before)));
  const [stretch, press, pull] = form === "wide" ? [3.2, 0.42, 0.42] : [1.9, 0.75, 0.14];
  const bodies: Floating[] = [...hulls].map(([key, r]) => ({ key, r: r + HULL_GAP / 2 }));
  bodies.sort((a, b) => b.r - a.r || (a.key < b.key ? -1 : 1));
  const news = bodies.filter((one) => !before.has(one.key));
  const olds = bodies.filter((one) => before.has(one.key));
  const keep = olds.length > 0;
  for (const one of olds) {
    const held = before.get(one.key) as Circle;
    one.x = held.x;
    one.y = held.y;
    if (held.r >= one.r - HULL_GAP / 2 - 0.01) {
      one.fx = held.x;
      one.fy = held.y;
    }
  }
  if (keep && news.length === 0 && olds.every((one) => one.fx !== undefined)) return centres(bodies);
  const start = news.map((one) => ({ x: 0, y: 0, r: one.r }));
  packSiblings(start);
  news.forEach((one, at) => {
    const outside = keep ? reach(olds) * 0.8 : 0;
    const angle = (hash(one.key) / 4294967296) * Math.PI * 2;
    one.x = (start[at]?.x ?? 0) * stretch + outside * Math.cos(angle);
    one.y = (start[at]?.y ?? 0) * press + outside * Math.sin(angle);
  });
  const force = forceSimulation(bodies)
    .force("apart", forceCollide<Floating>((one) => one.r).iterations(3))
    .force("x", forceX<Floating>(0).strength(0.03))
    .force("y", forceY<Floating>(0).strength(pull))
    .stop();
  force.tick(TICKS);
  return centres(bodies);
}

const turned = (circles: ReadonlyMap<string, Circle>): Map<string, Circle> =>
  new Map([...circles].map(([key, { x, y, r }]) => [key, { x: y, y: x, r }]));

const centres = (bodies: readonly Floating[]): Map<string, Circle> =>
  new Map(bodies.map((one) => [one.key, { x: one.x ?? 0, y: one.y ?? 0, r: one.r - HULL_GAP / 2 }]));

const reach = (bodies: readonly Floating[]): number =>
  Math.max(0, ...bodies.map((one) => Math.hypot(one.x ?? 0, one.y ?? 0) + one.r));

// --- all of it ---

export interface PlacedBody {
  agents: Map<string, Point>;
  groups: Map<string, Circle>;
  hulls: Map<string, Circle>;
}

/** The aspect ratio of the map's area: hulls are spread to fill it. */
export type Form = "tall" | "even" | "wide";

export const formOf = (width: number, height: number): Form =>
  height > width * 1.15 ? "tall" : width > height * 1.9 ? "wide" : "even";

export type Placer = (hulls: ReadonlyMap<string, number>) => ReadonlyMap<string, Circle>;

/** Keeps the seats of all groups and the hull positions of each arrangement. */
export class Arrangement {
  private readonly seats = new Map<string, Seats>();
  private readonly stood = new Map<string, Map<string, Circle>>();

  /**
   * `name` identifies arrangements that are remembered separately; `place` positions hulls elsewhere than on
   * the plane.
   */
  arrange(name: string, members: readonly Member[], place: Placer | undefined, form: Form): PlacedBody {
    const inner = new Map<string, string[]>();
    const outer = new Map<string, Set<string>>();
    for (const one of members) {
      put(inner, one.inner, () => []).push(one.id);
      put(outer, one.outer, () => new Set<string>()).add(one.inner);
    }
    for (const key of this.seats.keys()) if (!inner.has(key)) this.seats.delete(key);
    const seated = new Map<string, ReadonlyMap<string, number>>();
    for (const [key, ids] of inner) seated.set(key, put(this.seats, key, () => new Seats()).take(ids));
    const hulls = new Map<string, Hull>();
    for (const [key, groups] of outer) {
      hulls.set(key, packed(new Map([...groups].map((one) => [one, this.seats.get(one)?.capacity ?? 1]))));
    }
    const sizes = new Map([...hulls].map(([key, hull]) => [key, hull.r]));
    const key = `${name} ${form}`;
    const middles = place ? new Map(place(sizes)) : spread(sizes, this.stood.get(key) ?? new Map(), form);
    this.stood.set(key, middles);
    return this.put(hulls, middles, seated);
  }

  private put(
    hulls: ReadonlyMap<string, Hull>,
    middles: Map<string, Circle>,
    seated: ReadonlyMap<string, ReadonlyMap<string, number>>,
  ): PlacedBody {
    const placed: PlacedBody = { agents: new Map(), groups: new Map(), hulls: middles };
    for (const [key, hull] of hulls) {
      const middle = middles.get(key) ?? { x: 0, y: 0, r: hull.r };
      for (const [group, off] of hull.groups) {
        const circle = { x: middle.x + off.x, y: middle.y + off.y, r: off.r };
        placed.groups.set(group, circle);
        const edge = rim(this.seats.get(group)?.capacity ?? 1);
        for (const [id, k] of seated.get(group) ?? []) {
          const at = seat(k);
          placed.agents.set(id, { x: circle.x + at.x - edge.x, y: circle.y + at.y - edge.y });
        }
      }
    }
    return placed;
  }
}

function put<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let held = map.get(key);
  if (held === undefined) {
    held = make();
    map.set(key, held);
  }
  return held;
}
