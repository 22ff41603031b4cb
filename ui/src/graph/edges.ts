// Edge geometry and style. A curve bends to its right, so that opposite directions are two lines, and its
// bend is drawn towards the line between the two hulls, so that edges between the same hulls are bundled. An
// edge at a coarser level is the sum of the edges below it, with the worst of their statuses.
import { EDGE_RANK } from "./palette";
import type { EdgeRecord, EdgeStatus, Point } from "./types";

/** Anything with a position on the map; an edge connects two. */
export interface Body extends Point {
  id: string;
  r: number;
  /** Centre of the hull it is in; of a hull itself. */
  hull: Point;
  dim: boolean;
}

export class Link {
  cx = 0;
  cy = 0;
  x0 = 0;
  y0 = 0;
  x1 = 0;
  y1 = 0;
  rate = 0;
  step = 0;
  /** The worst status of its edges: what its mark shows. */
  status: EdgeStatus = "Healthy";
  /** How the line is drawn: a bundle looks unhealthy only when half of its edges are. */
  look: EdgeStatus = "Healthy";
  reason: string | null = null;
  records: EdgeRecord[] = [];

  constructor(
    readonly id: string,
    readonly from: Body,
    /** null: no receiver; the line ends in free space. */
    readonly to: Body | null,
  ) {}

  add(record: EdgeRecord): void {
    this.records.push(record);
  }

  /** Sums its records; true if its appearance changed. */
  sum(): boolean {
    const { status, step, look } = this;
    let wrong = 0;
    this.rate = 0;
    this.status = "Healthy";
    this.reason = null;
    for (const record of this.records) {
      this.rate += record.rate_per_s;
      if (record.status !== "Healthy") wrong += 1;
      if (EDGE_RANK[record.status] > EDGE_RANK[this.status]) {
        this.status = record.status;
        this.reason = record.reason ?? null;
      }
    }
    this.step = widthStep(this.rate);
    this.look = wrong * 2 >= this.records.length ? this.status : "Healthy";
    return status !== this.status || step !== this.step || look !== this.look;
  }

  /** Edges out of the focus, or to an agent found by the filter, are drawn in full. */
  get dim(): boolean {
    return this.from.dim && (this.to?.dim ?? true);
  }
}

export const WIDTHS: readonly number[] = [0.75, 1.1, 1.7, 2.6, 3.8];

/** Five widths over the logarithm of the rate: 0, from 0.02, 0.2, 2 and 20 messages a second. */
export function widthStep(rate: number): number {
  if (rate <= 0) return 0;
  return Math.max(1, Math.min(4, Math.floor(Math.log10(rate * 50)) + 1));
}

const BEND = 0.12;
const BUNDLE = 0.55;
const STUB = 46;

/**
 * Computes the curve between the present positions of its ends. No allocation: it runs for every edge during
 * movement.
 */
export function lay(link: Link): void {
  const { from, to } = link;
  link.x0 = from.x;
  link.y0 = from.y;
  if (!to) {
    const dx = from.x - from.hull.x;
    const dy = from.y - from.hull.y;
    const far = Math.hypot(dx, dy) || 1;
    link.x1 = from.x + (dx / far) * STUB + (far === 1 ? STUB : 0);
    link.y1 = from.y + (dy / far) * STUB;
    link.cx = (link.x0 + link.x1) / 2;
    link.cy = (link.y0 + link.y1) / 2;
    return;
  }
  link.x1 = to.x;
  link.y1 = to.y;
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const apart = from.hull === to.hull ? 0 : BUNDLE;
  const mx = (from.x + to.x) / 2;
  const my = (from.y + to.y) / 2;
  const hx = (from.hull.x + to.hull.x) / 2;
  const hy = (from.hull.y + to.hull.y) / 2;
  link.cx = mx + (hx - mx) * apart - dy * BEND;
  link.cy = my + (hy - my) * apart + dx * BEND;
}

export const alongX = (link: Link, t: number): number =>
  (1 - t) * (1 - t) * link.x0 + 2 * (1 - t) * t * link.cx + t * t * link.x1;

export const alongY = (link: Link, t: number): number =>
  (1 - t) * (1 - t) * link.y0 + 2 * (1 - t) * t * link.cy + t * t * link.y1;

/** The part of a curve outside of the circles at its ends, as a share of its length: from, to. */
export function openFrom(link: Link, gap: number): number {
  return Math.min(0.5, (link.from.r + gap) / (Math.hypot(link.x1 - link.x0, link.y1 - link.y0) || 1));
}

export function openTo(link: Link, gap: number): number {
  const r = (link.to?.r ?? 0) + gap;
  return 1 - Math.min(0.5, r / (Math.hypot(link.x1 - link.x0, link.y1 - link.y0) || 1));
}

/** Adds the part of the curve between its ends' rims to the path. */
export function trace(ctx: CanvasRenderingContext2D, link: Link, gap: number): void {
  const a = openFrom(link, gap);
  const b = openTo(link, gap);
  const { x0, y0, cx, cy, x1, y1 } = link;
  // The control point of a part of a quadratic curve is its blossom at both ends of the part.
  const bx = (1 - b) * ((1 - a) * x0 + a * cx) + b * ((1 - a) * cx + a * x1);
  const by = (1 - b) * ((1 - a) * y0 + a * cy) + b * ((1 - a) * cy + a * y1);
  ctx.moveTo(alongX(link, a), alongY(link, a));
  ctx.quadraticCurveTo(bx, by, alongX(link, b), alongY(link, b));
}

/** Distance of a point from the curve, by short straight pieces. */
export function distance(link: Link, x: number, y: number): number {
  let least = Number.POSITIVE_INFINITY;
  let px = link.x0;
  let py = link.y0;
  for (let step = 1; step <= 14; step++) {
    const t = step / 14;
    const qx = alongX(link, t);
    const qy = alongY(link, t);
    const dx = qx - px;
    const dy = qy - py;
    const length = dx * dx + dy * dy;
    const part = length > 0 ? Math.max(0, Math.min(1, ((x - px) * dx + (y - py) * dy) / length)) : 0;
    least = Math.min(least, Math.hypot(x - px - part * dx, y - py - part * dy));
    px = qx;
    py = qy;
  }
  return least;
}

/**
 * The links of a level: edges merged by the bodies that represent their ends. Traffic within one body is
 * summed there and not drawn. `bodyOf` returns null for hidden agents.
 */
export function linked(
  records: Iterable<EdgeRecord>,
  bodyOf: (agentId: string) => Body | null,
  single: boolean,
): { links: Map<string, Link>; of: Map<string, Link> } {
  const links = new Map<string, Link>();
  const of = new Map<string, Link>();
  for (const record of records) {
    const from = bodyOf(record.from);
    if (!from) continue;
    const to = record.to === null ? null : bodyOf(record.to);
    if (record.to !== null && !to) continue;
    if (from === to) continue;
    const id = single ? record.id : `${from.id} ⇒ ${to?.id ?? ""}`;
    let link = links.get(id);
    if (!link) {
      link = new Link(id, from, to);
      links.set(id, link);
    }
    link.add(record);
    of.set(record.id, link);
  }
  for (const link of links.values()) link.sum();
  return { links, of };
}
