// Camera mathematics: centre and scale of the view. Pure: a view in, a view out. Zoom and pan are clamped, so
// that no gesture loses the map; the level of detail follows the size of an agent on the screen.
import type { Level, Point } from "./types";

/** `x`, `y`: the world point in the centre of the canvas; `k`: CSS pixels per world unit. */
export interface View {
  x: number;
  y: number;
  k: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Box {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

/** The host's panels over the canvas: fitted content stays clear of them. */
export interface Insets {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

/** An agent's radius in world units; all other sizes of the map follow from it. */
export const AGENT_R = 11;
export const MAX_K = 5;
const FIT_MAX_K = 1.7;
/** Radius in pixels from which agents, then groups, are drawn individually. */
const AGENTS_FROM = 2.4;
const GROUPS_FROM = 1.1;
/** A level stays until the zoom is this far beyond its threshold, so that it does not flicker there. */
const STICKY = 0.08;

export const toScreen = (view: View, size: Size, x: number, y: number): Point => ({
  x: (x - view.x) * view.k + size.width / 2,
  y: (y - view.y) * view.k + size.height / 2,
});

export const toWorld = (view: View, size: Size, x: number, y: number): Point => ({
  x: (x - size.width / 2) / view.k + view.x,
  y: (y - size.height / 2) / view.k + view.y,
});

/** The view that shows the box whole, with a margin. */
export function fitted(box: Box, size: Size, inset: Insets, mostK = FIT_MAX_K): View {
  const wide = Math.max(1, box.x1 - box.x0);
  const high = Math.max(1, box.y1 - box.y0);
  const free = {
    width: Math.max(80, size.width - inset.left - inset.right),
    height: Math.max(80, size.height - inset.top - inset.bottom),
  };
  const k = Math.min(mostK, (free.width * 0.94) / wide, (free.height * 0.94) / high);
  const offX = (inset.left - inset.right) / 2 / k;
  const offY = (inset.top - inset.bottom) / 2 / k;
  return { x: (box.x0 + box.x1) / 2 - offX, y: (box.y0 + box.y1) / 2 - offY, k };
}

/** No further out than `floorK`, no nearer than MAX_K, and the centre stays over the map. */
export function clamped(view: View, box: Box, floorK: number): View {
  const k = Math.min(MAX_K, Math.max(floorK, view.k));
  return {
    x: Math.min(box.x1, Math.max(box.x0, view.x)),
    y: Math.min(box.y1, Math.max(box.y0, view.y)),
    k,
  };
}

/** Far enough out to see the whole mesh as clusters, even a small one. */
export const floorOf = (fitK: number): number => Math.min(fitK * 0.5, (GROUPS_FROM * 0.8) / AGENT_R);

/** Zoom by a factor about a point of the screen, which stays where it is. */
export function zoomedAbout(view: View, size: Size, at: Point, factor: number, floorK: number): View {
  const k = Math.min(MAX_K, Math.max(floorK, view.k * factor));
  const fixed = toWorld(view, size, at.x, at.y);
  return {
    x: fixed.x - (at.x - size.width / 2) / k,
    y: fixed.y - (at.y - size.height / 2) / k,
    k,
  };
}

/** Semantic zoom: far = clusters, mid = types, near = agents. */
export function levelAt(k: number, shown: Level | null): Level {
  const r = AGENT_R * k;
  const easier = (level: Level, from: number) => (shown === level ? from * (1 - STICKY) : from);
  if (r >= easier("agent", AGENTS_FROM)) return "agent";
  if (r >= (shown === "cluster" ? GROUPS_FROM : easier("group", GROUPS_FROM))) return "group";
  return "cluster";
}

/** Wheel ticks to a factor; a pinch on a touchpad comes as a wheel with ctrl. */
export function wheelFactor(event: { deltaY: number; deltaMode: number; ctrlKey: boolean }): number {
  const lines = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 120 : 1;
  const delta = Math.max(-240, Math.min(240, event.deltaY * lines));
  return 2 ** (-delta * (event.ctrlKey ? 0.01 : 0.0022));
}

export function between(a: View, b: View, t: number): View {
  // The scale changes geometrically, so that halfway in time looks like halfway.
  const k = a.k * (b.k / a.k) ** t;
  return { x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t, k };
}

export const easeOut = (t: number): number => 1 - (1 - t) ** 3;
export const easeInOut = (t: number): number => (t < 0.5 ? 4 * t ** 3 : 1 - (-2 * t + 2) ** 3 / 2);

export const inside = (box: Box, x: number, y: number, margin = 0): boolean =>
  x >= box.x0 - margin && x <= box.x1 + margin && y >= box.y0 - margin && y <= box.y1 + margin;

export function boxOf(circles: Iterable<{ x: number; y: number; r: number }>): Box | null {
  let box: Box | null = null;
  for (const { x, y, r } of circles) {
    box ??= { x0: x - r, y0: y - r, x1: x + r, y1: y + r };
    box.x0 = Math.min(box.x0, x - r);
    box.y0 = Math.min(box.y0, y - r);
    box.x1 = Math.max(box.x1, x + r);
    box.y1 = Math.max(box.y1, y + r);
  }
  return box;
}
