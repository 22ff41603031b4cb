// Hit testing. Bodies are in a quadtree, edges in a grid of the cells their curves pass through: each lookup
// examines a handful, whatever the size of the mesh. Built on first use after something moved.
import { type Quadtree, quadtree } from "d3-quadtree";
import { alongX, alongY, type Body, distance, type Link } from "./edges";
import type { Point } from "./types";

const CELL = 90;
const STEPS = 12;

export class BodyIndex<B extends Body> {
  private readonly tree: Quadtree<B>;
  private widest = 0;

  constructor(bodies: Iterable<B>) {
    this.tree = quadtree<B>(
      [],
      (one) => one.x,
      (one) => one.y,
    );
    for (const one of bodies) {
      this.tree.add(one);
      this.widest = Math.max(this.widest, one.r);
    }
  }

  /** The nearest body whose circle, grown by `slack`, contains the point. */
  at(x: number, y: number, slack: number): B | null {
    const reach = this.widest + slack;
    let best: B | null = null;
    let least = Number.POSITIVE_INFINITY;
    this.tree.visit((node, x0, y0, x1, y1) => {
      if (!node.length) {
        let leaf: typeof node | undefined = node;
        while (leaf) {
          const one = leaf.data;
          const far = Math.hypot(one.x - x, one.y - y);
          if (far <= one.r + slack && far < least) {
            least = far;
            best = one;
          }
          leaf = leaf.next;
        }
      }
      return x0 > x + reach || y0 > y + reach || x1 < x - reach || y1 < y - reach;
    });
    return best;
  }
}

export class LinkIndex {
  private readonly cells = new Map<number, Link[]>();
  private readonly first = new Set<Link>();

  constructor(links: Iterable<Link>) {
    for (const link of links) this.add(link);
  }

  private add(link: Link): void {
    // As many samples as the curve is long, so that no cell it passes is left out.
    const span =
      Math.hypot(link.cx - link.x0, link.cy - link.y0) + Math.hypot(link.x1 - link.cx, link.y1 - link.cy);
    const steps = Math.max(STEPS, Math.ceil((span / CELL) * 2));
    let last = Number.NaN;
    for (let step = 0; step <= steps; step++) {
      const key = cellOf(alongX(link, step / steps), alongY(link, step / steps));
      if (key === last) continue;
      last = key;
      const held = this.cells.get(key);
      if (!held) this.cells.set(key, [link]);
      else if (held[held.length - 1] !== link) held.push(link);
    }
  }

  /** The nearest link within `slack`; unhealthy links, then busier ones, are preferred. */
  at(x: number, y: number, slack: number): Link | null {
    let best: Link | null = null;
    let least = slack;
    this.first.clear();
    const reach = Math.ceil(slack / CELL);
    const col = Math.floor(x / CELL);
    const row = Math.floor(y / CELL);
    for (let dx = -reach; dx <= reach; dx++) {
      for (let dy = -reach; dy <= reach; dy++) {
        for (const link of this.cells.get(keyOf(col + dx, row + dy)) ?? []) {
          if (this.first.has(link) || link.dim) continue;
          this.first.add(link);
          const far = distance(link, x, y) - (link.status === "Healthy" ? 0 : slack * 0.2);
          if (far <= least) {
            least = far;
            best = link;
          }
        }
      }
    }
    return best;
  }
}

const keyOf = (col: number, row: number): number => (col + 32_768) * 65_536 + (row + 32_768);
const cellOf = (x: number, y: number): number => keyOf(Math.floor(x / CELL), Math.floor(y / CELL));

export type Direction = "up" | "down" | "left" | "right";
const WAYS: Record<Direction, Point> = {
  up: { x: 0, y: -1 },
  down: { x: 0, y: 1 },
  left: { x: -1, y: 0 },
  right: { x: 1, y: 0 },
};

/** The neighbour in a direction: near, and more ahead than to the side. */
export function neighbour<B extends Body>(bodies: Iterable<B>, from: Point, direction: Direction): B | null {
  const way = WAYS[direction];
  let best: B | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const one of bodies) {
    const dx = one.x - from.x;
    const dy = one.y - from.y;
    const ahead = dx * way.x + dy * way.y;
    const aside = Math.abs(dx * way.y) + Math.abs(dy * way.x);
    if (one.dim || ahead <= 0.5 || aside > ahead * 2.2) continue;
    const cost = ahead + aside * 1.8;
    if (cost < least) {
      least = cost;
      best = one;
    }
  }
  return best;
}
