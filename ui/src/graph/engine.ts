// The map's state and frame loop: changes are collected, applied once in the next frame and drawn; another
// frame is requested only while something moves. `Topology` is its public API; hand.ts turns gestures into
// calls.

import { inert } from "~/widgets/inert";
import type { Agent, AgentGroup } from "./bodies";
import { Camera } from "./camera";
import { drawOverlay, flashes, type Held } from "./draw/overlay";
import { type MakeSurface, makeSurface, type Stage } from "./draw/stage";
import type { Link } from "./edges";
import { Events } from "./events";
import type { Term } from "./find";
import { Forks } from "./forks";
import { type Measure, measured } from "./labels";
import { type Form, formOf } from "./layout";
import { Model, type News } from "./model";
import { Painter } from "./painter";
import type { Theme } from "./palette";
import { Picking } from "./picking";
import { type GroundOf, Scene } from "./scene";
import { Stopwatch } from "./stats";
import { Traffic } from "./traffic";
import type { Focus, Grouping, Hit, Layer, Level, MapObject } from "./types";
import { easeInOut, easeOut, levelAt } from "./zoom";

export interface TopologyOptions {
  frames: { next(painter: (nowMs: number) => void): void };
  reducedMotion: boolean;
  theme: Theme;
  /** How offscreen surfaces are created and the world map is loaded; tests pass their own. */
  make?: MakeSurface;
  loadGround?: () => Promise<GroundOf>;
}

export const MORPH_MS = 720;
export const SHIFT_MS = 260;
export const CAMERA_MS = 190;
/** A gesture has ended when no event came for this long. */
const REST_MS = 110;
/** Pulsing rings need no higher frame rate than this. */
const PULSE_EVERY_MS = 33;
const DATA_EVENT_MS = 250;
/** How long a fork's mark is shown before it fades. */
const LOOK_AGAIN_MS = 500;
const FOCUS_MAX_K = 2.6;
/** Above this number of pixels a frame is expensive and the difference is invisible. */
const MAX_DPR = 2;

/** Work to be done before the next frame, however many records came in between. */
class Dirt {
  places = false;
  filter = false;
  sums = false;
  links = false;
  figures = false;
  base = true;
  top = true;
  data = false;
}

export class Engine {
  readonly ctx: CanvasRenderingContext2D;
  readonly model = new Model();
  readonly scene = new Scene(this.model);
  readonly camera = new Camera();
  readonly events = new Events();
  readonly traffic = new Traffic();
  readonly forks = new Forks();
  readonly picking = new Picking();
  readonly watch = new Stopwatch();
  readonly dirt = new Dirt();
  readonly painter: Painter;
  readonly measure: Measure;
  groundOf: GroundOf | null = null;
  layer: Layer = "logical";
  grouping: Grouping = "type";
  level: Level | "auto" = "auto";
  focus: Focus | null = null;
  selected: MapObject | null = null;
  hovered: Hit | null = null;
  pointer: { x: number; y: number } | null = null;
  finding: Term[] = [];
  hiding: Term[] = [];
  theme: Theme;
  calm: boolean;
  gone = false;
  placed = false;
  private form: Form = "even";
  touchedAt = Number.NEGATIVE_INFINITY;
  private dpr = 1;
  private morph: { begun: number; lasts: number; whole: boolean } | null = null;
  private dataEventAt = Number.NEGATIVE_INFINITY;
  private lastViewKey = "";
  private drawnAt = Number.NEGATIVE_INFINITY;
  private pulses = false;

  constructor(
    readonly canvas: HTMLCanvasElement,
    readonly options: TopologyOptions,
  ) {
    const ctx = canvas.getContext("2d");
    if (!ctx) throw new Error("this browser gives no 2d canvas");
    this.ctx = ctx;
    this.theme = options.theme;
    this.calm = options.reducedMotion;
    this.painter = new Painter(canvas, options.make ?? makeSurface);
    this.measure = measured((face, text) => {
      ctx.font = face;
      return ctx.measureText(inert(text)).width;
    });
  }

  ask(): void {
    if (!this.gone) this.options.frames.next(this.paint);
  }

  resize(width: number, height: number, dpr: number): void {
    const { size } = this.camera;
    const clear = Math.min(MAX_DPR, dpr || 1);
    if (size.width === width && size.height === height && this.dpr === clear) return;
    this.dpr = clear;
    this.camera.size = { width, height };
    this.canvas.width = Math.max(1, Math.round(width * clear));
    this.canvas.height = Math.max(1, Math.round(height * clear));
    this.painter.reset();
    this.reform();
    if (this.placed && this.camera.untouched) this.aim(performance.now(), 0);
    // Resizing wipes the canvas: draw at once, or an empty canvas would be visible.
    if (this.placed) this.paint(performance.now());
    else this.ask();
  }

  /** Hulls are laid out for the aspect ratio of the area that panels leave free. */
  reform(): void {
    const { size, insets } = this.camera;
    const form = formOf(size.width - insets.left - insets.right, size.height - insets.top - insets.bottom);
    if (form === this.form) return;
    this.form = form;
    if (this.placed && this.layer === "logical") this.dirt.places = true;
  }

  take(news: News): void {
    const { dirt } = this;
    if (news.members) dirt.places = dirt.filter = dirt.sums = dirt.links = true;
    if (news.nodes) dirt.filter = dirt.sums = dirt.top = true;
    if (news.groups) dirt.sums = dirt.top = true;
    if (news.edgeSet) dirt.links = true;
    if (news.edges) dirt.figures = true;
    dirt.data = true;
    const now = performance.now();
    if (!this.calm && !document.hidden) {
      this.traffic.take(news, (id) => this.model.busyFrom(id), this.scene.linkOf, now);
    }
    this.forks.take(news.forks, now);
    this.ask();
  }

  /** Positions all agents in the layer; `whole`: another arrangement, not only new agents. */
  arrange(now: number, lasts: number, whole: boolean): void {
    const moves = this.scene.arrange(this.layer, this.grouping, this.groundOf, this.form);
    this.camera.box = this.scene.box;
    this.dirt.places = false;
    this.dirt.filter = this.dirt.sums = this.dirt.links = true;
    this.dirt.base = this.dirt.top = true;
    this.picking.forget();
    this.morph = null;
    if (moves && !this.calm && this.placed) this.morph = { begun: now, lasts, whole };
    else {
      this.scene.step(1);
      if (whole) this.events.emit("layer", this.layer);
    }
  }

  /** Moves the camera to the focus, or to the whole map. */
  aim(now: number, lasts: number): void {
    const box = this.focus ? this.scene.focusBox(this.focus) : null;
    this.camera.untouched = true;
    this.camera.go(
      box ? this.camera.over(box, FOCUS_MAX_K) : this.camera.whole(),
      now,
      this.calm ? 0 : lasts,
    );
    this.ask();
  }

  filter(): boolean {
    this.dirt.filter = false;
    const changed = this.scene.filter(this.finding, this.hiding, this.focus);
    if (changed) {
      this.dirt.base = this.dirt.top = this.dirt.sums = true;
      this.picking.forget();
    }
    return changed;
  }

  bodyOf(id: string): Agent | AgentGroup | undefined {
    return this.scene.agents.get(id) ?? this.scene.groups.get(id) ?? this.scene.hulls.get(id);
  }

  linkNamed(id: string): Link | undefined {
    return this.scene.linkById.get(id) ?? this.scene.linkOf.get(id);
  }

  // --- the frame ---

  readonly paint = (nowMs: number): void => {
    if (this.gone || this.camera.size.width < 2) return;
    if (this.onlyPulses() && nowMs - this.drawnAt < PULSE_EVERY_MS) {
      this.ask();
      return;
    }
    const began = performance.now();
    this.catchUp(nowMs);
    const moved = this.camera.step(nowMs);
    const morphing = this.step(nowMs);
    this.shift();
    const stage = this.stage();
    const resting = nowMs - this.touchedAt > REST_MS;
    const drew = this.painter.paint({
      scene: this.scene,
      stage,
      nowMs,
      selected: this.selected,
      base: this.dirt.base,
      top: this.dirt.top,
      moving: this.camera.moving || !resting,
      shown: this.morph?.whole ? Math.max(0, this.part(nowMs) * 2 - 1) : 1,
      morphing,
    });
    this.dirt.base = this.dirt.top = false;
    this.pick();
    const flowing = this.traffic.step(nowMs);
    this.forks.step(nowMs);
    drawOverlay(stage, this.scene, {
      nowMs,
      calm: this.calm,
      traffic: this.traffic,
      forks: this.forks,
      hovered: this.held(this.hovered),
      selected: this.held(this.selected),
    });
    this.drawnAt = nowMs;
    this.watch.add(performance.now() - began, drew);
    this.pulses = !this.calm && this.loops();
    this.emitChanges(nowMs, morphing);
    const more = moved || morphing || flowing || !resting || this.painter.wantsMore();
    if (more || this.pulses || this.forks.moves(nowMs)) this.ask();
    else if (this.forks.all.length > 0) setTimeout(() => this.ask(), LOOK_AGAIN_MS);
  };

  /** Only rings are animated: a lower frame rate will do. */
  private onlyPulses(): boolean {
    const { dirt } = this;
    const changed =
      dirt.places || dirt.filter || dirt.sums || dirt.links || dirt.figures || dirt.base || dirt.top;
    const busy = this.camera.moving || this.morph !== null || this.traffic.count > 0 || this.pointer !== null;
    return !changed && !busy && !this.painter.wantsMore() && this.forks.all.length === 0 && this.pulses;
  }

  private catchUp(now: number): void {
    const { dirt, scene } = this;
    if (dirt.places) this.settle(now);
    else if (dirt.sums || dirt.filter) scene.refresh();
    if (dirt.filter) this.filter();
    if (dirt.sums) {
      dirt.sums = false;
      if (scene.sum()) dirt.base = true;
    }
    if (dirt.links) this.relink(scene.level);
    else if (dirt.figures && scene.relink()) dirt.base = true;
    dirt.figures = false;
  }

  private settle(now: number): void {
    const first = !this.placed;
    this.arrange(now, SHIFT_MS, false);
    this.placed = this.scene.agents.size > 0;
    if (this.camera.untouched) this.aim(now, first ? 0 : SHIFT_MS);
  }

  private relink(level: Level): void {
    this.dirt.links = this.dirt.figures = false;
    this.scene.link(level);
    this.traffic.relink(this.scene.linkOf);
    this.picking.forget();
    this.dirt.base = this.dirt.top = true;
  }

  private part(now: number): number {
    return this.morph ? Math.max(0, Math.min(1, (now - this.morph.begun) / this.morph.lasts)) : 1;
  }

  /** Bodies that are moving; true while there are any. */
  private step(now: number): boolean {
    if (!this.morph) return false;
    const t = this.part(now);
    const { whole } = this.morph;
    this.scene.step(whole ? easeInOut(t) : easeOut(t));
    this.picking.forget();
    this.dirt.base = this.dirt.top = true;
    if (t >= 1) {
      this.morph = null;
      if (whole) this.events.emit("layer", this.layer);
    }
    return t < 1;
  }

  /** Changes the level of detail when the zoom, or the host, requires it. */
  private shift(): void {
    const wanted = this.level === "auto" ? levelAt(this.camera.view.k, this.scene.level) : this.level;
    if (wanted === this.scene.level) return;
    if (this.placed && !this.calm) this.painter.fadeFrom(this.stage());
    this.relink(wanted);
  }

  stage(): Stage {
    const { ctx, dpr, theme, measure } = this;
    return {
      ctx,
      view: this.camera.view,
      size: this.camera.size,
      dpr,
      theme,
      measure,
      signs: this.model.signs,
    };
  }

  /** What the pointer is over: computed once a frame, not once a movement. */
  private pick(): void {
    if (!this.pointer) return;
    const { x, y } = this.pointer;
    this.pointer = null;
    this.hover(this.picking.at(this.scene, this.camera.view, this.camera.size, x, y, false));
  }

  hover(hit: Hit | null): void {
    const same = hit?.id === this.hovered?.id && hit?.kind === this.hovered?.kind;
    this.hovered = hit;
    if (same) return;
    this.canvas.style.cursor = hit ? "pointer" : "";
    this.events.emit("hover", hit);
    this.ask();
  }

  private held(thing: { kind: string; id: string } | null): Held {
    if (!thing) return NOTHING;
    if (thing.kind === "edge") return { body: null, link: this.linkNamed(thing.id) ?? null };
    const body = this.bodyOf(thing.id) ?? null;
    if (!body || "totals" in body || this.scene.level === "agent") return { body, link: null };
    return { body: this.scene.level === "group" ? body.group : body.hull, link: null };
  }

  private loops(): boolean {
    for (const body of this.scene.bodies()) if (!body.dim && !body.hidden && flashes(body)) return true;
    return false;
  }

  private emitChanges(now: number, moving: boolean): void {
    const { x, y, k } = this.camera.view;
    const key = `${x} ${y} ${k} ${this.scene.level} ${this.camera.size.width} ${this.camera.size.height}`;
    if (key !== this.lastViewKey || moving) {
      this.lastViewKey = key;
      const zoom = k / this.camera.fitK;
      this.events.emit("view", { zoom, level: this.scene.level, moving: moving || this.camera.moving });
    }
    if (!this.dirt.data) return;
    if (now - this.dataEventAt >= DATA_EVENT_MS) {
      this.dirt.data = false;
      this.dataEventAt = now;
      this.events.emit("data", undefined);
    } else this.later();
  }

  private waiting = false;

  /**
   * Data came just after the last notification: notifies again a moment later, without drawing in between.
   */
  private later(): void {
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(() => {
      this.waiting = false;
      if (this.gone || !this.dirt.data) return;
      this.dirt.data = false;
      this.dataEventAt = performance.now();
      this.events.emit("data", undefined);
    }, DATA_EVENT_MS);
  }
}

const NOTHING: Held = { body: null, link: null };
