// Text on the map: names and figures of hulls and groups, agent names, alerts and, when zoomed in, tasks.
// Alerts stand at their icon (R165); a label without space is left out until a closer zoom, the worst alerts
// never.

import { plural } from "~/plural";
import { type Agent, type AgentGroup, gravity } from "../bodies";
import { alarmText } from "../callouts";
import { alongX, alongY, type Link } from "../edges";
import { bottom, top } from "../hulls";
import { cut, type Measure, Room } from "../labels";
import { CELL_X } from "../layout";
import { NEEDS_A_LOOK, perMinute, short, WORST } from "../palette";
import type { Scene } from "../scene";
import type { MapObject } from "../types";
import { type Block, block, type Line, type Piece, write } from "./blocks";
import { discRadius, NAMED_FROM } from "./nodes";
import { drawMark } from "./sprites";
import { font, inPixels, type Stage, screenX, screenY } from "./stage";

const NAMES_FROM = 8.5;
const ALARMS_FROM = 9;
const INTENTS_FROM = 21;
/** Alert kinds whose text is drawn even when zoomed out; for the others the mark is enough. */
const URGENT = new Set(["loop", "schema_violation", "held"]);
const MAX_EDGE_MARKS = 60;
const discs = new Room();
const blocks: Block[] = [];

export function drawTexts(
  stage: Stage,
  scene: Scene,
  agents: readonly Agent[],
  selected: MapObject | null,
): void {
  inPixels(stage);
  discs.clear();
  blocks.length = 0;
  if (scene.level === "agent") {
    for (const hull of scene.hulls.values()) header(stage, hull, selected);
    for (const group of scene.groups.values()) subtitle(stage, group);
    named(stage, agents, selected);
  } else if (scene.level === "group") {
    for (const hull of scene.hulls.values()) header(stage, hull, selected);
    for (const group of scene.groups.values()) caption(stage, group, selected);
  } else {
    for (const hull of scene.hulls.values()) inside(stage, hull);
  }
  drawEdgeMarks(stage, scene);
  write(stage.ctx, blocks, discs, stage.theme, stage.measure);
}

const isSelected = (selected: MapObject | null, id: string): boolean => selected?.id === id;

/** Above a hull: its name and a summary of its agents. */
function header(stage: Stage, hull: AgentGroup, selected: MapObject | null): void {
  if (hull.hidden || hull.dim) return;
  const { theme, view, measure } = stage;
  const x = screenX(stage, hull.x);
  const y = screenY(stage, hull.y + top(hull.outline));
  const below = screenY(stage, hull.y + bottom(hull.outline)) + 3;
  const wide = hull.r * 2 * view.k;
  const most = Math.max(90, wide * 1.2);
  const name: Line = {
    font: font(theme, 12, 600),
    px: 12,
    pieces: [{ text: cut(hull.name, font(theme, 12, 600), most, measure), colour: theme.text1 }],
  };
  const figures = figuresOf(stage, hull, wide > 150);
  const lines = wide > 70 ? [name, ...figures] : [name];
  const priority = 700 + Math.min(99, hull.totals.agents) + (isSelected(selected, hull.id) ? 300 : 0);
  blocks.push(block(x, y - 3, priority, lines, measure, { plate: true, above: true, below }));
}

function figuresOf(stage: Stage, bunch: AgentGroup, all: boolean): Line[] {
  const { theme } = stage;
  const { totals } = bunch;
  const small = font(theme, 11);
  const words = [
    plural(totals.agents, "agent"),
    ...(totals.rate > 0 ? [`${short(totals.rate)} msg/s`] : []),
    ...(all && totals.cost > 0 ? [perMinute(totals.cost)] : []),
  ];
  const lines: Line[] = [{ font: small, px: 11, pieces: [{ text: words.join(" · "), colour: theme.text2 }] }];
  const wrong = wrongOf(stage, bunch);
  if (wrong.length > 0) lines.push({ font: font(theme, 11, 600), px: 11, pieces: wrong });
  return lines;
}

/** "1 loop · 2 blocked", each in its colour and by its word. */
function wrongOf({ theme, signs }: Stage, bunch: AgentGroup): Piece[] {
  const pieces: Piece[] = [];
  for (const state of WORST) {
    const count = bunch.totals.states[state];
    if (count === 0 || !NEEDS_A_LOOK.has(state)) continue;
    if (pieces.length > 0) pieces.push({ text: " · ", colour: theme.text3 });
    pieces.push({ text: `${count} ${signs[state].word}`, colour: theme.text[state] });
  }
  return pieces;
}

/** A group's disc: its name and size; below it, its alerts. */
function caption(stage: Stage, group: AgentGroup, selected: MapObject | null): void {
  if (group.hidden || group.dim) return;
  const { theme, view, measure } = stage;
  const r = discRadius(group) * view.k;
  const x = screenX(stage, group.x);
  const y = screenY(stage, group.y);
  discs.block(x - r, y - r, x + r, y + r);
  const chosen = isSelected(selected, group.id);
  const worst = WORST.length - WORST.indexOf(group.totals.worst);
  const priority = chosen ? 1_000 : 200 + worst * 20 + Math.min(19, group.totals.agents / 10);
  const plain = font(theme, 11);
  const count = `${group.totals.agents}`;
  const line = (text: string, colour: string): Line => ({ font: plain, px: 11, pieces: [{ text, colour }] });
  const wrong = wrongOf(stage, group);
  const bad: Line[] = wrong.length > 0 ? [{ font: font(theme, 11, 600), px: 11, pieces: wrong }] : [];
  if (r >= NAMED_FROM) {
    const inner = [line(cut(group.name, plain, r * 1.7, measure), theme.text1), line(count, theme.text2)];
    blocks.push(block(x, y, priority + 100, inner, measure, { middle: true, over: true }));
    const below = chosen ? [line(group.name, theme.text1), ...bad] : bad;
    if (below.length > 0) blocks.push(block(x, y + r + 2, priority, below, measure, { plate: chosen }));
  } else if (r >= 6 || chosen) {
    const text = chosen ? group.name : cut(`${group.name} · ${count}`, plain, Math.max(64, r * 3), measure);
    blocks.push(block(x, y + r + 2, priority, [line(text, theme.text2)], measure, { plate: chosen }));
  }
}

/** In the centre of a hull when zoomed out. */
function inside(stage: Stage, hull: AgentGroup): void {
  if (hull.hidden || hull.dim) return;
  const { theme, view, measure } = stage;
  const x = screenX(stage, hull.x);
  const y = screenY(stage, hull.y);
  const wide = hull.r * 2 * view.k;
  const bold = font(theme, wide > 120 ? 14 : 12, 600);
  const px = wide > 120 ? 14 : 12;
  const roomy = wide > 100;
  const name = cut(hull.name, bold, Math.max(76, wide * (roomy ? 0.92 : 1.6)), measure);
  const lines: Line[] = [{ font: bold, px, pieces: [{ text: name, colour: theme.text1 }] }];
  if (wide > 60) lines.push(...figuresOf(stage, hull, wide > 190));
  const worst = WORST.length - WORST.indexOf(hull.totals.worst);
  const where = roomy ? { middle: true, over: true } : { plate: true };
  const at = roomy ? y : y + (wide / 2) * 0.9;
  const made = block(x, at, 300 + worst * 50 + Math.min(49, hull.totals.agents / 4), lines, measure, where);
  discs.block(x - wide * 0.4, y - wide * 0.4, x + wide * 0.4, y + wide * 0.4);
  blocks.push(made);
}

/** The group's name within a hull, when zoomed in far enough. */
function subtitle(stage: Stage, group: AgentGroup): void {
  const { theme, view, measure } = stage;
  if (group.hidden || group.dim || group.r * view.k < 44) return;
  const small = font(theme, 10.5);
  const text = cut(group.name, small, group.r * 1.9 * view.k, measure);
  const line: Line = { font: small, px: 10.5, pieces: [{ text, colour: theme.text3 }] };
  const y = screenY(stage, group.y - group.r);
  blocks.push(block(screenX(stage, group.x), y + 4, 90, [line], measure));
}

function named(stage: Stage, agents: readonly Agent[], selected: MapObject | null): void {
  const { view } = stage;
  const near = agents.length === 0 ? false : (agents[0] as Agent).r * view.k >= NAMES_FROM;
  for (const agent of agents) {
    const r = agent.r * view.k;
    const x = screenX(stage, agent.x);
    const y = screenY(stage, agent.y);
    if (near) discs.block(x - r, y - r, x + r, y + r);
    const chosen = isSelected(selected, agent.id);
    if (agent.dim && !chosen) continue;
    const alarmed = agent.alarm !== null && NEEDS_A_LOOK.has(agent.state);
    if (!chosen && !(near || (alarmed && r >= 5 && gravity(agent.alarm as NonNullable<Agent["alarm"]>) < 3)))
      continue;
    const lines = linesOf(stage, agent, r, chosen, alarmed);
    const priority = chosen
      ? 1_000
      : alarmed
        ? 600 - gravity(agent.alarm as NonNullable<Agent["alarm"]>) * 20
        : 100 + agent.load * 50;
    const gap = r + (agent.load > 0 ? 5 : 2);
    blocks.push(block(x, y + gap, priority, lines, stage.measure, { plate: chosen || alarmed }));
  }
}

function linesOf(stage: Stage, agent: Agent, r: number, chosen: boolean, alarmed: boolean): Line[] {
  const { theme, view, measure } = stage;
  const plain = font(theme, 11, chosen || alarmed ? 600 : 400);
  const room = CELL_X * view.k;
  const name = chosen || alarmed ? agent.label : tail(agent.label, plain, Math.max(44, room * 1.04), measure);
  const colour = chosen || alarmed ? theme.text1 : theme.text2;
  const lines: Line[] = [{ font: plain, px: 11, pieces: [{ text: name, colour }] }];
  const small = font(theme, 11);
  if (
    alarmed &&
    agent.alarm &&
    (chosen || r >= (URGENT.has(agent.alarm.kind) ? ALARMS_FROM : INTENTS_FROM * 0.75))
  ) {
    const text = cut(alarmText(agent.alarm, agent.record.reason), small, Math.max(210, room * 1.8), measure);
    lines.push({ font: small, px: 11, pieces: [{ text, colour: theme.text[agent.state] }] });
  }
  if (r >= INTENTS_FROM) {
    const at = agent.record.intent ?? agent.record.agent_type;
    if (at)
      lines.push({
        font: small,
        px: 11,
        pieces: [{ text: cut(at, small, room * 0.94, measure), colour: theme.text3 }],
      });
  }
  return lines;
}

/** The end of a name distinguishes agents; its beginning repeats the hull's name. */
export function tail(text: string, face: string, most: number, measure: Measure): string {
  if (measure(face, text) <= most) return text;
  for (let from = 1; from < text.length - 1; from++) {
    if (!/[-_./: ]/.test(text.charAt(from - 1))) continue;
    const end = text.slice(from);
    if (measure(face, end) <= most) return end;
  }
  return cut(text, face, most, measure);
}

/** ! for slow or failing edges, ‖ for blocked ones; the reason next to it when zoomed in. */
function drawEdgeMarks(stage: Stage, scene: Scene): void {
  const { ctx, theme, view, signs, measure } = stage;
  if (scene.level === "agent" && view.k < 0.5) return;
  let left = scene.level === "agent" ? MAX_EDGE_MARKS : 24;
  for (const link of scene.links) {
    if (link.status === "Healthy" || link.dim || left === 0) continue;
    const t = PLACES.find((one) => isFree(stage, link, one));
    if (t === undefined) continue;
    const x = screenX(stage, alongX(link, t));
    const y = screenY(stage, alongY(link, t));
    discs.block(x - 9, y - 9, x + 9, y + 9);
    left -= 1;
    mark(ctx, link, x, y, signs.blocked.colour, theme.canvas);
    if (view.k > 1.25 && link.reason) {
      const small = font(theme, 11);
      const text = cut(link.reason, small, 190, measure);
      const line: Line = { font: small, px: 11, pieces: [{ text, colour: theme.text.blocked }] };
      blocks.push(block(x, y + 10, 260, [line], measure, { plate: true }));
    }
  }
}

const PLACES: readonly number[] = [0.5, 0.36, 0.64];

function isFree(stage: Stage, link: Link, t: number): boolean {
  const x = screenX(stage, alongX(link, t));
  const y = screenY(stage, alongY(link, t));
  if (x < 0 || y < 0 || x > stage.size.width || y > stage.size.height) return false;
  return discs.isFree(x - 9, y - 9, x + 9, y + 9);
}

function mark(
  ctx: CanvasRenderingContext2D,
  link: Link,
  x: number,
  y: number,
  colour: string,
  ground: string,
): void {
  ctx.save();
  ctx.translate(x, y);
  ctx.beginPath();
  ctx.arc(0, 0, 7, 0, Math.PI * 2);
  ctx.fillStyle = ground;
  ctx.fill();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = 1.4;
  ctx.stroke();
  ctx.lineWidth = 1.7;
  ctx.lineCap = "round";
  drawMark(ctx, link.status === "Blocked" ? "square" : "triangle", 3.6);
  ctx.restore();
}
