// All edges of the level, batched by appearance: one path for each status, width and dimness, so that
// thousands of edges take some twenty strokes. Blocked is dashed, so that status is not shown by colour
// alone.
import { type Link, WIDTHS } from "../edges";
import { EDGE_RANK, faded } from "../palette";
import type { Scene } from "../scene";
import { ink, inWorld, type Stage, seen } from "./stage";

const STATUSES = 3;
const STEPS = WIDTHS.length;
const buckets: Link[][] = Array.from({ length: STATUSES * STEPS * 2 }, () => []);
const heads: Link[] = [];

const HEALTHY_DARK = [0.06, 0.11, 0.16, 0.23, 0.31];
const HEALTHY_LIGHT = [0.07, 0.13, 0.19, 0.26, 0.34];
const MAX_HEADS = 700;

/** `thin`: during movement, only the most important edges are drawn. */
export function drawLinks(stage: Stage, scene: Scene, shown: number, thin: boolean): void {
  const { ctx, theme, view, signs } = stage;
  sort(stage, scene.links, thin);
  inWorld(stage);
  ctx.lineCap = "round";
  const boost = crowd(scene.links.length);
  const amber = signs.blocked.colour;
  const px = 1 / view.k;
  // Many wide lines blur into a blot.
  const slim = scene.level !== "agent" && scene.links.length > 300 ? 0.45 : 1;
  for (let at = 0; at < buckets.length; at++) {
    const links = buckets[at] as Link[];
    if (links.length === 0) continue;
    const dim = at % 2 === 1;
    const step = (at >> 1) % STEPS;
    const status = Math.floor(at / 2 / STEPS);
    const healthy = (theme.dark ? HEALTHY_DARK : HEALTHY_LIGHT)[step] as number;
    ctx.globalAlpha = shown * (dim ? 0.22 : 1);
    ctx.strokeStyle =
      status === 0
        ? ink(theme, Math.min(0.7, healthy * boost))
        : faded(amber, scene.links.length > 600 ? 0.6 : 0.8);
    ctx.lineWidth =
      (status === 0
        ? (WIDTHS[step] as number) * slim
        : Math.min(2.6, Math.max(1.3, WIDTHS[step] as number))) * px;
    if (status === 2) ctx.setLineDash([5 * px, 5 * px]);
    ctx.beginPath();
    for (const link of links) {
      ctx.moveTo(link.x0, link.y0);
      ctx.quadraticCurveTo(link.cx, link.cy, link.x1, link.y1);
    }
    ctx.stroke();
    if (status === 2) ctx.setLineDash([]);
  }
  if (!thin) drawHeads(stage, shown);
  ctx.globalAlpha = 1;
}

/** The more edges there are, the fainter each. */
const crowd = (count: number): number =>
  count < 150 ? 1.5 : count < 600 ? 1.15 : count < 1_500 ? 0.75 : 0.38;

function sort(stage: Stage, links: readonly Link[], thin: boolean): void {
  const box = seen(stage);
  for (const bucket of buckets) bucket.length = 0;
  heads.length = 0;
  const near = stage.view.k > 0.75;
  for (const link of links) {
    if (
      Math.min(link.x0, link.x1, link.cx) > box.x1 ||
      Math.max(link.x0, link.x1, link.cx) < box.x0 ||
      Math.min(link.y0, link.y1, link.cy) > box.y1 ||
      Math.max(link.y0, link.y1, link.cy) < box.y0
    ) {
      continue;
    }
    const status = EDGE_RANK[link.look];
    if (thin && status === 0 && link.step < 2) continue;
    const { dim } = link;
    (buckets[(status * STEPS + link.step) * 2 + (dim ? 1 : 0)] as Link[]).push(link);
    if (near && !dim && link.step > 0 && heads.length < MAX_HEADS) heads.push(link);
  }
}

/** Small arrowheads at the receiver's rim, when zoomed in far enough. */
function drawHeads(stage: Stage, shown: number): void {
  const { ctx, theme, view } = stage;
  if (heads.length === 0) return;
  const long = 5 / view.k;
  ctx.globalAlpha = shown;
  ctx.fillStyle = ink(theme, 0.42);
  ctx.beginPath();
  for (const link of heads) {
    const dx = link.x1 - link.cx;
    const dy = link.y1 - link.cy;
    const far = Math.hypot(dx, dy) || 1;
    const ux = dx / far;
    const uy = dy / far;
    const gap = (link.to?.r ?? 0) + 5 / view.k;
    const tx = link.x1 - ux * gap;
    const ty = link.y1 - uy * gap;
    ctx.moveTo(tx, ty);
    ctx.lineTo(tx - ux * long - uy * long * 0.55, ty - uy * long + ux * long * 0.55);
    ctx.lineTo(tx - ux * long + uy * long * 0.55, ty - uy * long - ux * long * 0.55);
    ctx.closePath();
  }
  ctx.fill();
}
