// The bodies of the level: agents as sprites with a ring for load; groups and hulls as discs with a ring that
// shows how many of their agents are in which state.
import type { Agent, AgentGroup } from "../bodies";
import { faded, WORST } from "../palette";
import type { Scene } from "../scene";
import type { NodeState } from "../types";
import { drawBadge, type Sprites } from "./sprites";
import { font, ink, inPixels, type Stage, screenX, screenY, seen } from "./stage";

const DIM = 0.16;
const seenAgents: Agent[] = [];

/** The agents on the surface; the next frame reuses the array. */
export function agentsSeen(stage: Stage, scene: Scene): readonly Agent[] {
  const box = seen(stage);
  seenAgents.length = 0;
  for (const agent of scene.agents.values()) {
    if (agent.hidden) continue;
    if (agent.x < box.x0 - 20 || agent.x > box.x1 + 20 || agent.y < box.y0 - 20 || agent.y > box.y1 + 20)
      continue;
    seenAgents.push(agent);
  }
  return seenAgents;
}

export function drawAgents(stage: Stage, agents: readonly Agent[], sprites: Sprites): void {
  const { ctx, view, theme, signs, dpr } = stage;
  inPixels(stage);
  ctx.globalAlpha = DIM;
  let dimming = true;
  // Dimmed ones first: alpha changes once, and important ones lie above.
  for (const pass of [true, false]) {
    if (!pass && dimming) {
      ctx.globalAlpha = 1;
      dimming = false;
      drawLoads(stage, agents);
    }
    for (const agent of agents) {
      if (agent.dim !== pass) continue;
      const r = agent.r * view.k;
      const sprite = sprites.of(signs[agent.state], agent.glyph, r, agent.record.ghost === true, theme, dpr);
      const x = snapped(screenX(stage, agent.x), dpr);
      const y = snapped(screenY(stage, agent.y), dpr);
      ctx.drawImage(sprite.canvas, x - sprite.half, y - sprite.half, sprite.half * 2, sprite.half * 2);
    }
  }
}

/** Whole device pixels: letters in a sprite stay crisp. */
const snapped = (value: number, dpr: number): number => Math.round(value * dpr) / dpr;

function drawLoads(stage: Stage, agents: readonly Agent[]): void {
  const { ctx, view, theme } = stage;
  if (view.k < 0.42) return;
  ctx.strokeStyle = ink(theme, 0.5);
  ctx.lineWidth = Math.max(1, Math.min(2.5, 2 * view.k));
  ctx.lineCap = "round";
  ctx.beginPath();
  for (const agent of agents) {
    const { load } = agent;
    if (agent.dim || load <= 0.02) continue;
    const r = agent.r * view.k + Math.max(2, 3.2 * view.k);
    const x = screenX(stage, agent.x);
    const y = screenY(stage, agent.y);
    ctx.moveTo(x, y - r);
    ctx.arc(x, y, r, -Math.PI / 2, -Math.PI / 2 + load * Math.PI * 2);
  }
  ctx.stroke();
}

/** Discs of groups; hulls are drawn on the ground and carry only their ring. */
export function drawBunches(stage: Stage, bunches: Iterable<AgentGroup>): void {
  const { ctx, view, theme, signs } = stage;
  inPixels(stage);
  for (const bunch of bunches) {
    if (bunch.hidden) continue;
    const x = screenX(stage, bunch.x);
    const y = screenY(stage, bunch.y);
    const r = Math.max(4, discRadius(bunch) * view.k);
    if (x + r < 0 || y + r < 0 || x - r > stage.size.width || y - r > stage.size.height) continue;
    ctx.globalAlpha = bunch.dim ? DIM : 1;
    ctx.beginPath();
    ctx.arc(x, y, r, 0, Math.PI * 2);
    ctx.fillStyle = theme.surface2;
    ctx.fill();
    drawRing(stage, bunch, x, y, r);
    if (r >= 9 && r < NAMED_FROM) {
      ctx.fillStyle = theme.text1;
      ctx.font = font(theme, Math.max(8, Math.min(16, r * 0.62)), 600);
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText(bunch.glyph, x, y + 0.5);
    }
    const sign = signs[bunch.totals.worst];
    if (r >= 7) drawBadge(ctx, sign, x + r * 0.72, y - r * 0.72, Math.max(5, Math.min(9, r * 0.36)), theme);
  }
  ctx.globalAlpha = 1;
}

/** From this radius on a group's disc holds its name instead of its type's letters. */
export const NAMED_FROM = 22;

/** By its area, as the eye compares discs. */
export const discRadius = (bunch: AgentGroup): number => bunch.r * 0.72;

export function drawRing(stage: Stage, bunch: AgentGroup, x: number, y: number, r: number): void {
  const { ctx, theme, signs } = stage;
  const { states, agents } = bunch.totals;
  const wide = Math.max(1.5, Math.min(5, r * 0.14));
  ctx.lineWidth = wide;
  ctx.lineCap = "butt";
  if (agents === 0) return;
  let from = -Math.PI / 2;
  for (const state of WORST as readonly NodeState[]) {
    const share = states[state] / agents;
    if (share === 0) continue;
    const to = from + share * Math.PI * 2;
    ctx.beginPath();
    ctx.arc(x, y, r - wide / 2, from, to);
    ctx.strokeStyle =
      state === "idle" ? ink(theme, 0.28) : faded(signs[state].colour, state === "dead" ? 0.9 : 1);
    ctx.stroke();
    from = to;
  }
}
