// The arguments of every drawing function: a context, the view, and the theme. A surface may be larger than
// the canvas (a margin for panning), so sizes are the surface's own.
import type { Measure } from "../labels";
import type { Sign, Theme } from "../palette";
import type { NodeState } from "../types";
import type { Box, Size, View } from "../zoom";

export interface Stage {
  ctx: CanvasRenderingContext2D;
  view: View;
  size: Size;
  dpr: number;
  theme: Theme;
  signs: Record<NodeState, Sign>;
  measure: Measure;
}

export interface Surface {
  canvas: HTMLCanvasElement;
  ctx: CanvasRenderingContext2D;
}

/** How a canvas is created: tests pass their own. */
export type MakeSurface = (width: number, height: number, opaque: boolean) => Surface;

export const makeSurface: MakeSurface = (width, height, opaque) => {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width));
  canvas.height = Math.max(1, Math.round(height));
  const ctx = canvas.getContext("2d", { alpha: !opaque });
  if (!ctx) throw new Error("this browser gives no 2d canvas");
  return { canvas, ctx };
};

/** Draw in world units; a line of one pixel is 1 / k wide. */
export function inWorld({ ctx, view, size, dpr }: Stage): void {
  const k = view.k * dpr;
  ctx.setTransform(k, 0, 0, k, (size.width / 2) * dpr - view.x * k, (size.height / 2) * dpr - view.y * k);
}

/** Draw in CSS pixels. */
export function inPixels({ ctx, dpr }: Stage): void {
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
}

export const screenX = ({ view, size }: Stage, x: number): number => (x - view.x) * view.k + size.width / 2;
export const screenY = ({ view, size }: Stage, y: number): number => (y - view.y) * view.k + size.height / 2;

/** The part of the world on the surface. */
export function seen({ view, size }: Stage): Box {
  const halfX = size.width / 2 / view.k;
  const halfY = size.height / 2 / view.k;
  return { x0: view.x - halfX, y0: view.y - halfY, x1: view.x + halfX, y1: view.y + halfY };
}

/** Neutral ink on this theme's ground, by how much of it. */
export const ink = (theme: Theme, alpha: number): string =>
  theme.dark ? `rgba(255,255,255,${alpha})` : `rgba(16,20,36,${alpha})`;

export const font = (theme: Theme, px: number, weight = 400): string => `${weight} ${px}px ${theme.font}`;
