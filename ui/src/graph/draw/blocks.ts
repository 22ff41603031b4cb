// A text block: lines of coloured pieces about a centre. It is drawn whole or not at all. Blocks on a plate
// may lie over discs, plain ones may not; no text ever overlaps another.
import { inert } from "~/widgets/inert";
import { type Measure, Room } from "../labels";
import type { Theme } from "../palette";

export interface Piece {
  text: string;
  colour: string;
}

export interface Line {
  font: string;
  px: number;
  pieces: Piece[];
}

export interface Block {
  /** CSS pixels: centre and upper edge. */
  x: number;
  y: number;
  width: number;
  height: number;
  priority: number;
  plate: boolean;
  /** May lie over discs without a plate. */
  over: boolean;
  /** An alternative upper edge if there is no space. */
  else: number | null;
  lines: Line[];
  alpha: number;
}

const LEADING = 1.28;

export function block(
  x: number,
  y: number,
  priority: number,
  lines: Line[],
  measure: Measure,
  {
    plate = false,
    over = false,
    above = false,
    middle = false,
    alpha = 1,
    below = null as number | null,
  } = {},
): Block {
  let width = 0;
  let height = 0;
  for (const line of lines) {
    let wide = 0;
    for (const piece of line.pieces) wide += measure(line.font, piece.text);
    width = Math.max(width, wide);
    height += line.px * LEADING;
  }
  const top = above ? y - height : middle ? y - height / 2 : y;
  return { x, y: top, width, height, priority, plate, over, else: below, lines, alpha };
}

const texts = new Room();

/** Draws the blocks that fit, the most important first. `discs`: what plain blocks must keep clear of. */
export function write(
  ctx: CanvasRenderingContext2D,
  blocks: Block[],
  discs: Room,
  theme: Theme,
  measure: Measure,
): number {
  texts.clear();
  blocks.sort((a, b) => b.priority - a.priority);
  let written = 0;
  for (const one of blocks) {
    const x0 = one.x - one.width / 2 - 3;
    const x1 = one.x + one.width / 2 + 3;
    if (!one.plate && !one.over && !discs.isFree(x0 + 3, one.y + 1, x1 - 3, one.y + one.height - 2)) continue;
    if (!texts.take(x0, one.y, x1, one.y + one.height)) {
      if (one.else === null || !texts.take(x0, one.else, x1, one.else + one.height)) continue;
      one.y = one.else;
    }
    writeOne(ctx, one, theme, measure);
    written += 1;
  }
  ctx.globalAlpha = 1;
  return written;
}

function writeOne(ctx: CanvasRenderingContext2D, one: Block, theme: Theme, measure: Measure): void {
  ctx.globalAlpha = one.alpha;
  if (one.plate) {
    ctx.globalAlpha = one.alpha * 0.74;
    ctx.fillStyle = theme.canvas;
    ctx.beginPath();
    ctx.roundRect(one.x - one.width / 2 - 4, one.y - 1, one.width + 8, one.height + 2, 4);
    ctx.fill();
    ctx.globalAlpha = one.alpha;
  }
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  let y = one.y;
  for (const line of one.lines) {
    let wide = 0;
    for (const piece of line.pieces) wide += measure(line.font, piece.text);
    let x = Math.round(one.x - wide / 2);
    ctx.font = line.font;
    for (const piece of line.pieces) {
      ctx.fillStyle = piece.colour;
      ctx.fillText(inert(piece.text), x, Math.round(y + line.px));
      x += measure(line.font, piece.text);
    }
    y += line.px * LEADING;
  }
}
