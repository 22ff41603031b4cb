// Two cached pictures under the canvas: hulls and thousands of edges on the lower, nodes and texts on the
// upper. They are separate elements, so the browser composes them and a frame in which only dots move draws
// dots and nothing else. Both are somewhat larger than the canvas: while a large mesh is dragged they are
// moved as they are and redrawn when the gesture ends; a small mesh is redrawn each frame, because it can be.
import { drawGround } from "./draw/ground";
import { drawLinks } from "./draw/links";
import { agentsSeen, drawAgents, drawBunches } from "./draw/nodes";
import { Sprites } from "./draw/sprites";
import { inWorld, type MakeSurface, type Stage, type Surface } from "./draw/stage";
import { drawTexts } from "./draw/text";
import { faded, NEEDS_A_LOOK } from "./palette";
import type { Scene } from "./scene";
import type { MapObject } from "./types";
import type { View } from "./zoom";

const MARGIN = 112;
/** A full redraw up to this cost is done in every frame of a gesture. */
const BUDGET_MS = 5;
const FADE_MS = 170;

export interface Order {
  scene: Scene;
  stage: Stage;
  nowMs: number;
  selected: MapObject | null;
  /** Hulls or edges changed. */
  base: boolean;
  /** Nodes or texts changed. */
  top: boolean;
  /** The camera is moving, by animation or by hand. */
  moving: boolean;
  /** Bodies are moving: the opacity of the new arrangement. */
  shown: number;
  morphing: boolean;
}

interface Cached extends Surface {
  view: View;
  placed: string;
}

const same = (a: View, b: View): boolean => a.k === b.k && a.x === b.x && a.y === b.y;

export class Painter {
  readonly sprites: Sprites;
  /** Holds the pictures, below the canvas. */
  readonly under: HTMLDivElement;
  private base: Cached | null = null;
  private top: Cached | null = null;
  private old: Cached | null = null;
  private costMs = 0;
  private owesBase = false;
  private owesTop = false;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly make: MakeSurface,
  ) {
    this.sprites = new Sprites(make);
    this.under = document.createElement("div");
    this.under.style.cssText =
      "position:absolute;inset:0;overflow:hidden;pointer-events:none;background:var(--canvas)";
    this.under.ariaHidden = "true";
    canvas.before(this.under);
  }

  destroy(): void {
    this.under.remove();
  }

  /** Size, resolution or theme changed: the cached pictures are useless. */
  reset(): void {
    this.sprites.clear();
    this.under.replaceChildren();
    this.base = this.top = this.old = null;
  }

  /** The previous picture fades out over the next. */
  fadeFrom(stage: Stage): void {
    if (!this.base || !this.top || !same(this.base.view, this.top.view)) return;
    this.old?.canvas.remove();
    const old = this.surface(stage, true);
    old.ctx.drawImage(this.base.canvas, 0, 0);
    old.ctx.drawImage(this.top.canvas, 0, 0);
    old.view = { ...this.top.view };
    old.placed = "";
    this.old = old;
    const gone = () => {
      old.canvas.remove();
      if (this.old === old) this.old = null;
    };
    old.canvas
      .animate([{ opacity: 1 }, { opacity: 0 }], { duration: FADE_MS, easing: "ease-out" })
      .finished.then(gone, gone);
  }

  /** Brings the pictures up to date with the stage; true if one was redrawn. */
  paint(order: Order): boolean {
    const { stage } = order;
    const { top, base } = this;
    const moved = !top || !same(top.view, stage.view);
    const wantsTop = order.top || order.morphing || moved || this.owesTop;
    const wantsBase = order.base || order.morphing || !base || !same(base.view, stage.view) || this.owesBase;
    const mayWait = top !== null && order.moving && !order.morphing && this.costMs > BUDGET_MS;
    let drew = false;
    if (wantsTop || wantsBase) {
      if (mayWait && this.covers(top, stage)) {
        this.owesBase = wantsBase;
        this.owesTop = true;
      } else {
        this.draw(order, wantsBase, wantsTop);
        drew = true;
      }
    }
    for (const one of [this.base, this.top, this.old]) if (one) place(one, stage);
    return drew;
  }

  /** The pictures are only approximate: another frame is needed. */
  wantsMore(): boolean {
    return this.owesBase || this.owesTop;
  }

  private draw(order: Order, base: boolean, top: boolean): void {
    const began = performance.now();
    const { stage, scene } = order;
    const size = { width: stage.size.width + 2 * MARGIN, height: stage.size.height + 2 * MARGIN };
    this.base ??= this.surface(stage, true);
    this.top ??= this.surface(stage, false);
    if (base) {
      const thin = order.morphing && scene.links.length > 500;
      const below: Stage = { ...stage, ctx: this.base.ctx, size };
      drawGround(below, scene, order.shown);
      drawLinks(below, scene, order.morphing ? 0.6 : 1, thin);
      this.base.view = { ...stage.view };
    }
    if (top) {
      this.drawTop({ ...stage, ctx: this.top.ctx, size }, order);
      this.top.view = { ...stage.view };
    }
    this.owesBase = this.owesTop = false;
    // The cost of a gesture frame: both pictures.
    if (base && top) this.costMs = this.costMs * 0.6 + (performance.now() - began) * 0.4;
  }

  private drawTop(stage: Stage, { scene, morphing, selected }: Order): void {
    const { ctx, dpr, size } = stage;
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.globalAlpha = 1;
    ctx.clearRect(0, 0, size.width, size.height);
    if (scene.level === "agent") {
      const agents = agentsSeen(stage, scene);
      drawAgents(stage, agents, this.sprites);
      if (!morphing || agents.length < 200) drawTexts(stage, scene, agents, selected);
      return;
    }
    if (scene.level === "group") drawBunches(stage, scene.groups.values());
    else drawFar(stage, scene);
    drawTexts(stage, scene, [], selected);
  }

  private surface({ size, dpr, view }: Stage, opaque: boolean): Cached {
    const wide = size.width + 2 * MARGIN;
    const high = size.height + 2 * MARGIN;
    const made = this.make(wide * dpr, high * dpr, opaque);
    made.canvas.style.cssText = `position:absolute;left:${-MARGIN}px;top:${-MARGIN}px;width:${wide}px;height:${high}px;transform-origin:50% 50%;will-change:transform`;
    this.under.append(made.canvas);
    return { ...made, view: { ...view }, placed: "" };
  }

  /**
   * Good enough until the gesture ends: up to a quarter of the canvas may be empty at its border for that
   * long.
   */
  private covers(picture: Cached, { view, size }: Stage): boolean {
    const s = view.k / picture.view.k;
    if (s < 0.6 || s > 1.8) return false;
    const halfX = (size.width / 2 + MARGIN) * s - Math.abs(picture.view.x - view.x) * view.k;
    const halfY = (size.height / 2 + MARGIN) * s - Math.abs(picture.view.y - view.y) * view.k;
    return halfX >= size.width * 0.375 && halfY >= size.height * 0.375;
  }
}

/** A picture of another view, transformed to this one. */
function place(picture: Cached, { view }: Stage): void {
  const s = view.k / picture.view.k;
  const x = (picture.view.x - view.x) * view.k;
  const y = (picture.view.y - view.y) * view.k;
  const wanted = s === 1 && x === 0 && y === 0 ? "none" : `translate(${x}px,${y}px) scale(${s})`;
  if (wanted === picture.placed) return;
  picture.placed = wanted;
  picture.canvas.style.transform = wanted;
}

/** A disc keeps a distance from its neighbours. */
export const FAR = 0.94;

/** When zoomed out, hulls lie over the edges between them, so that their figures can be read. */
function drawFar(stage: Stage, scene: Scene): void {
  const { ctx, theme, view, signs } = stage;
  inWorld(stage);
  for (const hull of scene.hulls.values()) {
    if (hull.hidden) continue;
    const { worst } = hull.totals;
    const wrong = NEEDS_A_LOOK.has(worst);
    ctx.globalAlpha = hull.dim ? 0.3 : 1;
    ctx.beginPath();
    ctx.arc(hull.x, hull.y, hull.r * FAR, 0, Math.PI * 2);
    ctx.fillStyle = theme.surface2;
    ctx.fill();
    ctx.lineWidth = (wrong ? 2 : 1) / view.k;
    ctx.strokeStyle = wrong ? faded(signs[worst].colour, 0.95) : theme.hairlineStrong;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}
