// Card positions. Rows are causal layers (a child is always below its parents); columns come from elkjs once,
// and from then on the picture only grows: placed cards stay, a new step takes the free position nearest to
// its parents. A big graph is grown from the start. "Re-layout" runs elkjs. Pure; the worker is in
// layouting.ts.
import type { Drawn } from "./collapse";

export const WIDE = 236;
export const HIGH = 88;
export const ACROSS = 28;
export const BELOW = 42;
const ROW = HIGH + BELOW;
const COLUMN = WIDE + ACROSS;

export interface Spot {
  row: number;
  x: number;
}
export type Spots = ReadonlyMap<string, Spot>;

export function pointOf(spot: Spot): { x: number; y: number } {
  return { x: spot.x, y: spot.row * ROW };
}

export interface ElkNode {
  id: string;
  width: number;
  height: number;
  x?: number;
  y?: number;
}
export interface ElkGraph {
  id: string;
  layoutOptions: Record<string, string>;
  children: ElkNode[];
  edges: { id: string; sources: string[]; targets: string[] }[];
}

/** Above this many cards the straightest placement takes too long; the compact one is quick and narrow. */
const FINE = 160;

export function elkOf(drawn: Drawn): ElkGraph {
  const fine = drawn.items.length <= FINE;
  return {
    id: "session",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "DOWN",
      "elk.spacing.nodeNode": String(ACROSS),
      "elk.layered.spacing.nodeNodeBetweenLayers": String(BELOW),
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
      "elk.edgeRouting": "POLYLINE",
      "elk.layered.layering.strategy": "LONGEST_PATH_SOURCE",
      ...(fine
        ? { "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF" }
        : {
            "elk.layered.nodePlacement.strategy": "SIMPLE",
            "elk.layered.thoroughness": "1",
            "elk.layered.crossingMinimization.greedySwitch.type": "OFF",
          }),
    },
    children: drawn.items.map((item) => ({ id: item.id, width: WIDE, height: HIGH })),
    edges: drawn.links.map((link, n) => ({ id: `e${n}`, sources: [link.from], targets: [link.to] })),
  };
}

/** elkjs leaves space for routed edges between its layers; here a layer is a row of even height. */
export function spotsOf(laid: { children?: ElkNode[] }): Map<string, Spot> {
  const nodes = laid.children ?? [];
  const levels = [...new Set(nodes.map((node) => Math.round(node.y ?? 0)))].sort((a, b) => a - b);
  const rows = new Map(levels.map((y, row) => [y, row]));
  return new Map(
    nodes.map((node) => [
      node.id,
      { row: rows.get(Math.round(node.y ?? 0)) ?? 0, x: Math.round(node.x ?? 0) },
    ]),
  );
}

/** Placed cards stay; new ones get a position; ones no longer drawn are removed. */
export function grown(before: Spots, drawn: Drawn): Map<string, Spot> {
  const spots = new Map<string, Spot>();
  const rows = new Map<number, number[]>();
  const put = (id: string, spot: Spot) => {
    spots.set(id, spot);
    const row = rows.get(spot.row);
    if (row) row.splice(firstFrom(row, spot.x), 0, spot.x);
    else rows.set(spot.row, [spot.x]);
  };
  for (const item of drawn.items) {
    const spot = before.get(item.id);
    if (spot) put(item.id, spot);
  }
  if (spots.size === drawn.items.length) return spots;
  const parents = new Map<string, string[]>();
  const children = new Map<string, string[]>();
  for (const { from, to } of drawn.links) {
    const above = parents.get(to);
    if (above) above.push(from);
    else parents.set(to, [from]);
    const below = children.get(from);
    if (below) below.push(to);
    else children.set(from, [to]);
  }
  for (const item of drawn.items) {
    if (spots.has(item.id)) continue;
    put(item.id, place(item.id, spots, rows, parents, children));
  }
  return spots;
}

/**
 * Whether every step is below its parents: growth cannot fix a change in the middle of the picture, elkjs
 * can.
 */
export function isSound(spots: Spots, drawn: Drawn): boolean {
  return drawn.links.every(({ from, to }) => {
    const above = spots.get(from);
    const below = spots.get(to);
    return !above || !below || below.row > above.row;
  });
}

function place(
  id: string,
  spots: ReadonlyMap<string, Spot>,
  rows: ReadonlyMap<number, number[]>,
  parents: ReadonlyMap<string, string[]>,
  children: ReadonlyMap<string, string[]>,
): Spot {
  const known = (ids: string[] | undefined) =>
    (ids ?? []).flatMap((other) => {
      const spot = spots.get(other);
      return spot ? [spot] : [];
    });
  const above = known(parents.get(id));
  if (above.length === 0) {
    // A new root, or a late parent: just above its children, else right of everything.
    const below = known(children.get(id));
    const first = below[0];
    if (first) {
      const row = Math.max(0, Math.min(...below.map((spot) => spot.row)) - 1);
      return { row, x: free(rows.get(row) ?? [], first.x) };
    }
    const row = rows.get(0) ?? [];
    return { row: 0, x: row.length === 0 ? 0 : (row.at(-1) ?? 0) + COLUMN };
  }
  const row = Math.max(...above.map((spot) => spot.row)) + 1;
  const middle = above.reduce((sum, spot) => sum + spot.x, 0) / above.length;
  const siblings = known(children.get(parents.get(id)?.[0] ?? "")).filter((spot) => spot.row === row);
  const wished = siblings.length === 0 ? middle : Math.max(...siblings.map((spot) => spot.x)) + COLUMN;
  return { row, x: free(rows.get(row) ?? [], Math.round(wished)) };
}

/** The free position of a row nearest to the desired one; to the right if two are equally near. */
function free(row: readonly number[], wished: number): number {
  const from = firstFrom(row, wished - COLUMN + 1);
  if ((row[from] ?? Number.POSITIVE_INFINITY) >= wished + COLUMN) return wished;
  // Outwards from the desired position, card by card, until two are far enough apart; a row ends on both
  // sides.
  let right = from;
  while ((row[right + 1] ?? Number.POSITIVE_INFINITY) - (row[right] ?? 0) < 2 * COLUMN) right += 1;
  let left = from;
  while ((row[left] ?? 0) - (row[left - 1] ?? Number.NEGATIVE_INFINITY) < 2 * COLUMN) left -= 1;
  const after = (row[right] ?? 0) + COLUMN;
  const before = (row[left] ?? 0) - COLUMN;
  return wished - before < after - wished ? before : after;
}

/** The index of the first in a sorted row that is not left of `x`. */
function firstFrom(row: readonly number[], x: number): number {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((row[middle] ?? 0) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}
