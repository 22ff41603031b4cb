// The soft outline around circles: a convex polygon of points on their rims, fine enough to look round.
// Relative to the hull's centre, so that a hull that moves is drawn without being recomputed.
import type { Circle, Point } from "./types";

const STEPS = 36;

/** x, y, x, y … counterclockwise, relative to the centre; at least a circle. */
export function outline(circles: readonly Circle[], pad: number, middle: Point): Float32Array {
  const points: Point[] = [];
  for (const circle of circles) {
    for (let step = 0; step < STEPS; step++) {
      const angle = (step / STEPS) * Math.PI * 2;
      points.push({
        x: circle.x - middle.x + (circle.r + pad) * Math.cos(angle),
        y: circle.y - middle.y + (circle.r + pad) * Math.sin(angle),
      });
    }
  }
  const around = convex(points);
  const flat = new Float32Array(around.length * 2);
  around.forEach((point, at) => {
    flat[at * 2] = point.x;
    flat[at * 2 + 1] = point.y;
  });
  return flat;
}

/** Andrew's monotone chain. */
export function convex(points: readonly Point[]): Point[] {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  if (sorted.length < 3) return sorted;
  const lower = chain(sorted);
  const upper = chain(sorted.reverse());
  lower.pop();
  upper.pop();
  return [...lower, ...upper];
}

function chain(points: readonly Point[]): Point[] {
  const made: Point[] = [];
  for (const point of points) {
    while (
      made.length >= 2 &&
      turn(made[made.length - 2] as Point, made[made.length - 1] as Point, point) <= 0
    ) {
      made.pop();
    }
    made.push(point);
  }
  return made;
}

const turn = (a: Point, b: Point, c: Point): number => (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);

/** Whether a point, relative to the hull's centre, lies within a convex outline. */
export function within(around: Float32Array, x: number, y: number): boolean {
  const count = around.length / 2;
  if (count < 3) return false;
  for (let at = 0; at < count; at++) {
    const next = (at + 1) % count;
    const ax = around[at * 2] as number;
    const ay = around[at * 2 + 1] as number;
    const bx = around[next * 2] as number;
    const by = around[next * 2 + 1] as number;
    if ((bx - ax) * (y - ay) - (by - ay) * (x - ax) < 0) return false;
  }
  return true;
}

/** The highest point of an outline: where its name is drawn. */
export function top(around: Float32Array): number {
  let least = 0;
  for (let at = 1; at < around.length; at += 2) least = Math.min(least, around[at] as number);
  return least;
}

/** The lowest. */
export function bottom(around: Float32Array): number {
  let most = 0;
  for (let at = 1; at < around.length; at += 2) most = Math.max(most, around[at] as number);
  return most;
}
