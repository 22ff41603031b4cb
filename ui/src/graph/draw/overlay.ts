// Everything animated or interactive, drawn over the cached picture each frame: traffic dots, loop pulses,
// forks, hover and selection. With reduced motion: no dots, and static rings.
import { inert } from "~/widgets/inert";
import type { Agent, AgentGroup } from "../bodies";
import { alongX, alongY, type Body, type Link, openFrom, openTo, trace } from "../edges";
import { BURST_MS, FADES_MS, type Forks, STAYS_MS } from "../forks";
import { faded } from "../palette";
import type { Scene } from "../scene";
import type { Traffic } from "../traffic";
import { discRadius } from "./nodes";
import { font, ink, inPixels, inWorld, type Stage, screenX, screenY } from "./stage";

export interface Held {
  body: Body | null;
  link: Link | null;
}

export interface Moving {
  nowMs: number;
  calm: boolean;
  traffic: Traffic;
  forks: Forks;
  hovered: Held;
  selected: Held;
}

export function drawOverlay(stage: Stage, scene: Scene, moving: Moving): void {
  stage.ctx.setTransform(1, 0, 0, 1, 0, 0);
  stage.ctx.clearRect(0, 0, stage.ctx.canvas.width, stage.ctx.canvas.height);
  drawHeld(stage, scene, moving.hovered, 0.5);
  drawHeld(stage, scene, moving.selected, 1);
  if (!moving.calm) drawDots(stage, scene, moving);
  drawForks(stage, scene, moving);
  drawPulses(stage, scene, moving);
  stage.ctx.globalAlpha = 1;
}

function drawDots(stage: Stage, scene: Scene, { traffic, nowMs }: Moving): void {
  if (traffic.count === 0) return;
  const { ctx, theme, size, view } = stage;
  inPixels(stage);
  const r = view.k > 0.9 ? 2.3 : view.k > 0.45 ? 1.8 : 1.5;
  ctx.fillStyle = ink(theme, theme.dark ? 0.88 : 0.72);
  ctx.beginPath();
  for (let at = 0; at < traffic.count; at++) {
    const way = traffic.along(at, nowMs);
    const link = traffic.links[at];
    if (!link || way < 0 || way > 1 || link.dim) continue;
    const from = openFrom(link, 0);
    const t = from + (openTo(link, 0) - from) * way;
    const wx = alongX(link, t);
    const wy = alongY(link, t);
    if (scene.level === "cluster" && isUnder(scene, wx, wy)) continue;
    const x = screenX(stage, wx);
    const y = screenY(stage, wy);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    ctx.moveTo(x + r, y);
    ctx.arc(x, y, r, 0, 6.3);
  }
  ctx.fill();
}

/** When zoomed out, hulls lie over the lines, and so over the dots on them. */
function isUnder(scene: Scene, x: number, y: number): boolean {
  for (const hull of scene.hulls.values())
    if (Math.hypot(hull.x - x, hull.y - y) < hull.r * 0.94) return true;
  return false;
}

/** A loop must be noticed: its ring grows and fades, or is static with reduced motion. */
function drawPulses(stage: Stage, scene: Scene, { nowMs, calm }: Moving): void {
  const { ctx, signs, view } = stage;
  const sign = signs.alert_entropy;
  inPixels(stage);
  const phase = calm ? 0.35 : (nowMs % 1_400) / 1_400;
  ctx.lineWidth = 2;
  ctx.strokeStyle = faded(sign.colour, calm ? 0.8 : 0.9 * (1 - phase));
  ctx.beginPath();
  for (const body of scene.bodies()) {
    if (body.dim || body.hidden || !flashes(body)) continue;
    const r = radiusOf(body) * view.k + 4 + phase * 16;
    const x = screenX(stage, body.x);
    const y = screenY(stage, body.y);
    ctx.moveTo(x + r, y);
    ctx.arc(x, y, r, 0, Math.PI * 2);
  }
  ctx.stroke();
}

export const flashes = (body: Agent | AgentGroup): boolean =>
  "totals" in body ? body.totals.states.alert_entropy > 0 : body.state === "alert_entropy";

export const radiusOf = (body: Body): number =>
  "totals" in body
    ? (body as AgentGroup).level === "group"
      ? discRadius(body as AgentGroup)
      : body.r
    : body.r;

function drawHeld(stage: Stage, scene: Scene, held: Held, strength: number): void {
  const { ctx, theme, view } = stage;
  const { body, link } = held;
  if (!body && !link) return;
  inWorld(stage);
  ctx.globalAlpha = strength;
  ctx.strokeStyle = theme.accent;
  ctx.lineCap = "round";
  ctx.lineWidth = (link ? 2.5 : 1.25) / view.k;
  ctx.beginPath();
  for (const one of scene.links) {
    if (one !== link && one.from !== body && one.to !== body) continue;
    trace(ctx, one, 3 / view.k);
  }
  ctx.stroke();
  inPixels(stage);
  if (body) {
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(screenX(stage, body.x), screenY(stage, body.y), radiusOf(body) * view.k + 4, 0, Math.PI * 2);
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

function drawForks(stage: Stage, scene: Scene, { forks, nowMs, calm }: Moving): void {
  const { ctx, theme, view, measure } = stage;
  for (const burst of forks.all) {
    const parent = bodyOf(scene, burst.parent);
    if (!parent || parent.dim) continue;
    const age = nowMs - burst.begun;
    const x = screenX(stage, parent.x);
    const y = screenY(stage, parent.y);
    const out = calm ? 1 : Math.min(1, age / BURST_MS);
    const fade = Math.max(0, Math.min(1, (STAYS_MS - age) / FADES_MS));
    ctx.globalAlpha = fade * (out < 1 ? 1 : 0.55);
    ctx.strokeStyle = ctx.fillStyle = theme.accent;
    ctx.lineWidth = 1.75;
    for (const id of burst.children) {
      const child = bodyOf(scene, id);
      if (!child || child === parent) continue;
      const tx = x + (screenX(stage, child.x) - x) * ease(out);
      const ty = y + (screenY(stage, child.y) - y) * ease(out);
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(tx, ty);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(tx, ty, 3.2, 0, Math.PI * 2);
      ctx.fill();
    }
    ctx.globalAlpha = fade;
    pill(
      ctx,
      stage,
      `1→${burst.count}`,
      x,
      y - radiusOf(parent) * view.k - 15,
      font(theme, 11, 600),
      measure,
    );
  }
}

function pill(
  ctx: CanvasRenderingContext2D,
  { theme }: Stage,
  text: string,
  x: number,
  y: number,
  face: string,
  measure: Stage["measure"],
): void {
  const wide = measure(face, text) + 10;
  ctx.beginPath();
  ctx.roundRect(x - wide / 2, y - 8, wide, 16, 8);
  ctx.fillStyle = theme.surface3;
  ctx.fill();
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 1;
  ctx.stroke();
  ctx.fillStyle = theme.text1;
  ctx.font = face;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(inert(text), x, y + 0.5);
}

function bodyOf(scene: Scene, id: string): Body | null {
  const agent = scene.agents.get(id);
  if (!agent || agent.hidden) return null;
  return scene.level === "agent" ? agent : scene.level === "group" ? agent.group : agent.hull;
}

const ease = (t: number): number => 1 - (1 - t) ** 3;
