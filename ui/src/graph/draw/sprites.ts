// Node pictures, drawn once and copied: a thousand copies are far cheaper than a thousand paths and texts. A
// sprite shows state by colour, by shape and, if large enough, by its mark in a badge; the type by two
// letters.
import { faded, type Shape, type Sign, type Theme } from "../palette";
import { font, type MakeSurface } from "./stage";

export interface Sprite {
  canvas: HTMLCanvasElement;
  /** Half of its side, in CSS pixels. */
  half: number;
}

const MAX_SPRITES = 600;
export const GLYPH_FROM = 7;
export const BADGE_FROM = 8.5;

export class Sprites {
  private readonly made = new Map<string, Sprite>();

  constructor(private readonly make: MakeSurface) {}

  clear(): void {
    this.made.clear();
  }

  of(sign: Sign, glyph: string, radius: number, ghost: boolean, theme: Theme, dpr: number): Sprite {
    const r = Math.max(1.5, Math.round(radius * 2) / 2);
    const letters = r >= GLYPH_FROM ? glyph : "";
    const key = `${sign.shape} ${sign.colour} ${letters} ${r} ${ghost ? 1 : 0}`;
    let sprite = this.made.get(key);
    if (!sprite) {
      if (this.made.size >= MAX_SPRITES) this.made.clear();
      sprite = this.draw(sign, letters, r, ghost, theme, dpr);
      this.made.set(key, sprite);
    }
    return sprite;
  }

  private draw(sign: Sign, letters: string, r: number, ghost: boolean, theme: Theme, dpr: number): Sprite {
    const half = Math.ceil(r + (r >= BADGE_FROM ? 7 : 3));
    const { canvas, ctx } = this.make(half * 2 * dpr, half * 2 * dpr, false);
    ctx.setTransform(dpr, 0, 0, dpr, half * dpr, half * dpr);
    const dead = sign.shape === "cross";
    shapePath(ctx, sign.shape, r);
    if (r < 4.5) {
      ctx.fillStyle = dead ? faded(sign.colour, theme.dark ? 0.9 : 0.55) : sign.colour;
      ctx.fill();
      return { canvas, half };
    }
    ctx.fillStyle = theme.canvas;
    ctx.fill();
    const quiet = sign.shape === "circle" || dead;
    ctx.fillStyle = faded(sign.colour, quiet ? 0.18 : theme.dark ? 0.42 : 0.24);
    ctx.fill();
    ctx.strokeStyle = faded(sign.colour, dead ? 0.8 : 1);
    ctx.lineWidth = quiet ? 1.25 : 1.75;
    if (ghost) ctx.setLineDash([2.5, 2.5]);
    ctx.stroke();
    ctx.setLineDash([]);
    if (letters) {
      ctx.fillStyle = dead ? theme.text3 : theme.text1;
      ctx.font = font(theme, Math.max(7.5, Math.min(16, r * 0.82)), 600);
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText(letters, 0, sign.shape === "triangle" ? r * 0.18 : 0.5);
    }
    // Healthy agents are drawn faintly.
    const large = sign.shape === "disc" ? 0.34 : 0.5;
    const least = sign.shape === "disc" ? 3.6 : 5.5;
    if (r >= BADGE_FROM)
      drawBadge(ctx, sign, r * 0.74, -r * 0.74, Math.min(8, Math.max(least, r * large)), theme);
    return { canvas, half };
  }
}

/** The mark of a state in a small disc; drawn by lines where fonts may lack the sign. */
export function drawBadge(
  ctx: CanvasRenderingContext2D,
  sign: Sign,
  x: number,
  y: number,
  r: number,
  theme: Theme,
): void {
  if (sign.shape === "circle") return;
  ctx.save();
  ctx.translate(x, y);
  ctx.beginPath();
  ctx.arc(0, 0, r, 0, Math.PI * 2);
  ctx.fillStyle = sign.colour;
  ctx.fill();
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = theme.canvas;
  ctx.stroke();
  ctx.strokeStyle = ctx.fillStyle =
    sign.shape === "square" || sign.shape === "triangle" ? "#1a1204" : "#ffffff";
  ctx.lineWidth = Math.max(1.2, r * 0.26);
  ctx.lineCap = "round";
  drawMark(ctx, sign.shape, r * 0.5);
  ctx.restore();
}

/** ⟲ ! ‖ × ▸ · as lines about the middle, `s` half their size. */
export function drawMark(ctx: CanvasRenderingContext2D, shape: Shape, s: number): void {
  ctx.beginPath();
  switch (shape) {
    case "octagon":
      ctx.arc(0, 0, s, -Math.PI * 0.4, Math.PI * 1.25);
      ctx.moveTo(-s * 1.25, -s * 0.1);
      ctx.lineTo(-s * 0.72, -s * 0.72);
      ctx.lineTo(0, -s * 0.35);
      ctx.stroke();
      break;
    case "triangle":
      ctx.moveTo(0, -s);
      ctx.lineTo(0, s * 0.25);
      ctx.moveTo(0, s * 0.95);
      ctx.lineTo(0, s);
      ctx.stroke();
      break;
    case "square":
      ctx.moveTo(-s * 0.45, -s * 0.85);
      ctx.lineTo(-s * 0.45, s * 0.85);
      ctx.moveTo(s * 0.45, -s * 0.85);
      ctx.lineTo(s * 0.45, s * 0.85);
      ctx.stroke();
      break;
    case "cross":
      ctx.moveTo(-s * 0.75, -s * 0.75);
      ctx.lineTo(s * 0.75, s * 0.75);
      ctx.moveTo(s * 0.75, -s * 0.75);
      ctx.lineTo(-s * 0.75, s * 0.75);
      ctx.stroke();
      break;
    case "disc":
      ctx.moveTo(-s * 0.55, -s * 0.85);
      ctx.lineTo(s * 0.9, 0);
      ctx.lineTo(-s * 0.55, s * 0.85);
      ctx.closePath();
      ctx.fill();
      break;
    case "circle":
      ctx.arc(0, 0, s * 0.3, 0, Math.PI * 2);
      ctx.fill();
      break;
  }
}

export function shapePath(ctx: CanvasRenderingContext2D, shape: Shape, r: number): void {
  ctx.beginPath();
  if (shape === "octagon") polygon(ctx, 8, r * 1.06, Math.PI / 8);
  else if (shape === "triangle") polygon(ctx, 3, r * 1.28, -Math.PI / 2);
  else if (shape === "square") ctx.roundRect(-r * 0.9, -r * 0.9, r * 1.8, r * 1.8, r * 0.25);
  else if (shape === "cross" && r < 4.5) {
    const a = r * 0.9;
    const b = r * 0.32;
    for (const [x, y] of CROSS)
      ctx.lineTo(x === 2 ? a : x === -2 ? -a : x * b, y === 2 ? a : y === -2 ? -a : y * b);
    ctx.closePath();
  } else ctx.arc(0, 0, r, 0, Math.PI * 2);
}

const CROSS: readonly (readonly [number, number])[] = [
  [-1, -2],
  [1, -2],
  [1, -1],
  [2, -1],
  [2, 1],
  [1, 1],
  [1, 2],
  [-1, 2],
  [-1, 1],
  [-2, 1],
  [-2, -1],
  [-1, -1],
];

function polygon(ctx: CanvasRenderingContext2D, sides: number, r: number, turn: number): void {
  for (let side = 0; side < sides; side++) {
    const angle = turn + (side / sides) * Math.PI * 2;
    ctx.lineTo(r * Math.cos(angle), r * Math.sin(angle));
  }
  ctx.closePath();
}
