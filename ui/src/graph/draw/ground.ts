// The lowest layer: land and dock of the geographic map, and the soft hulls.
import type { AgentGroup } from "../bodies";
import { faded, NEEDS_A_LOOK } from "../palette";
import type { Scene } from "../scene";
import { font, ink, inWorld, type Stage } from "./stage";

let land: { text: string; path: Path2D } | null = null;

export function drawGround(stage: Stage, scene: Scene, shown: number): void {
  const { ctx, theme, size, dpr } = stage;
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.globalAlpha = 1;
  ctx.fillStyle = theme.canvas;
  ctx.fillRect(0, 0, size.width, size.height);
  inWorld(stage);
  if (scene.ground) drawMap(stage, scene, shown);
  ctx.globalAlpha = shown;
  for (const hull of scene.hulls.values()) {
    // When zoomed out, hulls are discs of the upper picture.
    if (!hull.hidden && scene.level !== "cluster") drawHull(stage, hull);
  }
  if (scene.level === "agent") drawGroups(stage, scene);
  ctx.globalAlpha = 1;
}

function drawMap(stage: Stage, scene: Scene, shown: number): void {
  const { ctx, theme, view } = stage;
  const { ground } = scene;
  if (!ground) return;
  if (land?.text !== ground.land) land = { text: ground.land, path: new Path2D(ground.land) };
  ctx.globalAlpha = shown;
  ctx.fillStyle = theme.surface2;
  ctx.fill(land.path);
  ctx.strokeStyle = theme.hairline;
  ctx.lineWidth = 1 / view.k;
  ctx.stroke(land.path);
  if (ground.dock) {
    const { x0, y0, x1, y1 } = ground.dock;
    ctx.setLineDash([6 / view.k, 5 / view.k]);
    ctx.strokeStyle = theme.hairlineStrong;
    ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
    ctx.setLineDash([]);
    ctx.fillStyle = theme.text3;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    ctx.font = font(theme, 12 / view.k);
    ctx.fillText("not on the map: no region is known", x0 + 10 / view.k, y1 - 6 / view.k);
  }
  // A hull pushed aside has a line to its true position.
  ctx.strokeStyle = ink(theme, 0.35);
  ctx.fillStyle = ink(theme, 0.6);
  for (const [key, home] of ground.anchors) {
    const hull = scene.hulls.get(key);
    if (!hull || hull.hidden) continue;
    ctx.beginPath();
    ctx.moveTo(hull.x, hull.y);
    ctx.lineTo(home.x, home.y);
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(home.x, home.y, 2.5 / view.k, 0, Math.PI * 2);
    ctx.fill();
  }
}

function hullPath(ctx: CanvasRenderingContext2D, hull: AgentGroup): void {
  const { outline } = hull;
  ctx.beginPath();
  if (outline.length < 6) {
    ctx.arc(hull.x, hull.y, hull.r, 0, Math.PI * 2);
    return;
  }
  ctx.moveTo(hull.x + (outline[0] as number), hull.y + (outline[1] as number));
  for (let at = 2; at < outline.length; at += 2) {
    ctx.lineTo(hull.x + (outline[at] as number), hull.y + (outline[at + 1] as number));
  }
  ctx.closePath();
}

function drawHull(stage: Stage, hull: AgentGroup): void {
  const { ctx, theme, view, signs } = stage;
  const { worst } = hull.totals;
  const wrong = NEEDS_A_LOOK.has(worst) && !hull.dim;
  const alpha = ctx.globalAlpha;
  if (hull.dim) ctx.globalAlpha = alpha * 0.35;
  hullPath(ctx, hull);
  ctx.fillStyle = ink(theme, theme.dark ? 0.032 : 0.03);
  ctx.fill();
  ctx.lineWidth = 1 / view.k;
  ctx.strokeStyle = wrong ? faded(signs[worst].colour, 0.42) : theme.hairline;
  ctx.stroke();
  ctx.globalAlpha = alpha;
}

/** The agents of one type in one cluster, within a hull that holds several. */
function drawGroups(stage: Stage, scene: Scene): void {
  const { ctx, theme, view } = stage;
  if (view.k < 0.3) return;
  ctx.fillStyle = ink(theme, theme.dark ? 0.022 : 0.02);
  ctx.beginPath();
  for (const group of scene.groups.values()) {
    if (group.hidden || group.dim || group.agents.length < 2) continue;
    ctx.moveTo(group.x + group.r, group.y);
    ctx.arc(group.x, group.y, group.r, 0, Math.PI * 2);
  }
  ctx.fill();
}
