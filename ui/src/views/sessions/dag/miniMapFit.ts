// Fits a whole graph into the minimap. Pure.
import { HIGH, WIDE } from "./layout";

export const ACROSS = 150;
export const DOWN = 96;
const EDGE = 6;

export interface Fit {
  x: number;
  y: number;
  scale: number;
}

export function fitOf(nodes: readonly { position: { x: number; y: number } }[]): Fit {
  let left = Number.POSITIVE_INFINITY;
  let right = Number.NEGATIVE_INFINITY;
  let bottom = HIGH;
  for (const { position } of nodes) {
    left = Math.min(left, position.x);
    right = Math.max(right, position.x + WIDE);
    bottom = Math.max(bottom, position.y + HIGH);
  }
  if (right < left) return { x: 0, y: 0, scale: 0.01 };
  const scale = Math.min((ACROSS - 2 * EDGE) / (right - left), (DOWN - 2 * EDGE) / bottom, 0.12);
  return {
    scale,
    x: (ACROSS - (right - left) * scale) / 2 - left * scale,
    y: (DOWN - bottom * scale) / 2,
  };
}
