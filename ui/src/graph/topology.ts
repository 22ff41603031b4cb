// The map of the mesh on one canvas: the engine's public API. It receives records and view settings and emits
// what the operator points at. It knows no React and no socket (ADR-016). Setters ignore unchanged values: a
// host may set everything again whenever its URL changes.
import type { Change } from "~/live/records";
import { type Callout, callouts } from "./callouts";
import { radiusOf } from "./draw/overlay";
import { Engine, MORPH_MS, SHIFT_MS, type TopologyOptions } from "./engine";
import type { MapEvents } from "./events";
import { type Fault, parseFind, type Term } from "./find";
import { gestureHandlers } from "./gestureHandlers";
import { listen, type Meanings } from "./gestures";
import type { Theme } from "./palette";
import type { Stats } from "./stats";
import type {
  EdgeRecord,
  FleetPicture,
  Focus,
  Grouping,
  GroupRecord,
  Layer,
  Level,
  MapObject,
  NodeRecord,
  NodeState,
} from "./types";
import { type Insets, inside, toScreen } from "./zoom";

export type FindResult = { ok: true; matches: number; of: number } | { ok: false; faults: Fault[] };

export interface Counts {
  agents: number;
  shown: number;
  edges: number;
  states: Record<NodeState, number>;
}

export class Topology {
  private readonly engine: Engine;
  private readonly hand: Meanings;
  private readonly undo: (() => void)[] = [];
  private layerWanted: Layer = "logical";
  private isStale = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    options: TopologyOptions,
  ) {
    this.engine = new Engine(canvas, options);
    this.hand = gestureHandlers(this.engine, {
      focus: (focus) => this.enter(focus),
      select: (thing) => this.chosen(thing),
      up: () => this.up(),
    });
    canvas.tabIndex = 0;
    canvas.style.touchAction = "none";
    // A layer of its own: animations on it do not make the browser repaint the pictures below.
    canvas.style.willChange = "transform";
    this.undo.push(listen(canvas, this.hand), this.watchSize());
  }

  destroy(): void {
    this.engine.gone = true;
    for (const undo of this.undo) undo();
    this.engine.events.clear();
    this.engine.painter.destroy();
  }

  on<N extends keyof MapEvents>(name: N, hear: (payload: MapEvents[N]) => void): () => void {
    return this.engine.events.on(name, hear);
  }

  // --- data ---

  put(change: Change): void {
    this.engine.take(this.engine.model.put(change));
  }

  show(answer: FleetPicture): void {
    this.engine.traffic.clear();
    this.engine.forks.clear();
    this.engine.take(this.engine.model.show(answer));
  }

  node(id: string): NodeRecord | undefined {
    return this.engine.model.nodes.get(id);
  }

  edge(id: string): EdgeRecord | undefined {
    return this.engine.model.edges.get(id);
  }

  group(id: string): GroupRecord | undefined {
    const { groups, clusters } = this.engine.model;
    return groups.get(id) ?? clusters.get(id);
  }

  hulls(): { id: string; name: string; agents: number }[] {
    const { hulls } = this.engine.scene;
    return [...hulls.values()].map((one) => ({ id: one.id, name: one.name, agents: one.agents.length }));
  }

  counts(): Counts {
    const { model, scene } = this.engine;
    const states = { idle: 0, active: 0, alert_entropy: 0, schema_violation: 0, dead: 0, blocked: 0 };
    for (const node of model.nodes.values()) states[node.state] += 1;
    let shown = 0;
    for (const agent of scene.agents.values()) if (!agent.hidden && !agent.dim) shown += 1;
    return { agents: model.nodes.size, shown, edges: model.edges.size, states };
  }

  // --- view ---

  get layer(): Layer {
    return this.layerWanted;
  }

  set layer(layer: Layer) {
    if (layer === this.layerWanted) return;
    this.layerWanted = layer;
    if (layer === "logical" || this.engine.groundOf) this.turn();
    else void this.loadGround();
  }

  private async loadGround(): Promise<void> {
    const { engine } = this;
    try {
      engine.groundOf = await (engine.options.loadGround ?? (async () => (await import("./geo")).ground))();
    } catch {
      this.layerWanted = engine.layer;
      engine.events.emit(
        "trouble",
        "The world map could not be loaded. Nothing else is affected; try again.",
      );
      engine.events.emit("layer", engine.layer);
      return;
    }
    if (!engine.gone && this.layerWanted === "geographic") this.turn();
  }

  private turn(): void {
    if (this.engine.layer === this.layerWanted) return;
    this.engine.layer = this.layerWanted;
    this.rearrange();
  }

  get grouping(): Grouping {
    return this.engine.grouping;
  }

  set grouping(grouping: Grouping) {
    if (grouping === this.engine.grouping) return;
    this.engine.grouping = grouping;
    if (this.engine.layer === "logical") this.rearrange();
  }

  /** Moves every agent to its new position, and the camera with them. */
  private rearrange(): void {
    const now = performance.now();
    this.engine.arrange(now, MORPH_MS, true);
    this.engine.aim(now, MORPH_MS);
  }

  get level(): Level | "auto" {
    return this.engine.level;
  }

  set level(level: Level | "auto") {
    if (level === this.engine.level) return;
    this.engine.level = level;
    this.engine.ask();
  }

  get shownLevel(): Level {
    return this.engine.scene.level;
  }

  get focus(): Focus | null {
    return this.engine.focus;
  }

  set focus(focus: Focus | null) {
    const { engine } = this;
    const next = focus && (focus.cluster !== undefined || focus.group !== undefined) ? { ...focus } : null;
    if (next?.cluster === engine.focus?.cluster && next?.group === engine.focus?.group) return;
    engine.focus = next;
    engine.dirt.filter = true;
    engine.aim(performance.now(), engine.placed ? SHIFT_MS + 120 : 0);
  }

  /** Drill down by hand: what is opened must be visible, so a pinned coarser level is unpinned. */
  private enter(focus: Focus | null): void {
    this.focus = focus;
    if (this.level === "cluster" || this.level === "group") {
      this.level = "auto";
      this.engine.events.emit("level", "auto");
    }
    this.engine.events.emit("focus", this.focus);
  }

  /** One level up out of the focus; false if there is none. */
  up(): boolean {
    const { focus, layer, grouping, events } = this.engine;
    if (!focus) return false;
    const { cluster, group } = focus;
    const outer: Focus = layer === "logical" && grouping === "type" ? { group } : { cluster };
    this.focus = cluster !== undefined && group !== undefined ? outer : null;
    events.emit("focus", this.focus);
    return true;
  }

  get selected(): MapObject | null {
    return this.engine.selected;
  }

  select(thing: MapObject | null, { reveal = false } = {}): void {
    const { engine } = this;
    if (thing?.id !== engine.selected?.id || thing?.kind !== engine.selected?.kind) {
      engine.selected = thing;
      engine.dirt.top = true;
      engine.ask();
    }
    if (thing && reveal) this.reveal(thing.id);
  }

  private chosen(thing: MapObject): void {
    this.select(thing, { reveal: true });
    this.engine.events.emit("select", thing);
  }

  /** Moves the camera there if it is off the screen. */
  reveal(id: string): void {
    const { camera, calm } = this.engine;
    const body = this.engine.bodyOf(id) ?? this.engine.linkNamed(id)?.from;
    if (!body) return;
    const { top, right, bottom, left } = camera.insets;
    const at = toScreen(camera.view, camera.size, body.x, body.y);
    const free = {
      x0: left + 40,
      y0: top + 40,
      x1: camera.size.width - right - 40,
      y1: camera.size.height - bottom - 40,
    };
    if (inside(free, at.x, at.y)) return;
    camera.untouched = false;
    camera.go(
      { x: body.x, y: body.y, k: Math.max(camera.view.k, 0.8) },
      performance.now(),
      calm ? 0 : SHIFT_MS,
    );
    this.engine.ask();
  }

  find(text: string): FindResult {
    return this.filtered(text, (terms) => {
      this.engine.finding = terms;
    });
  }

  hide(text: string): FindResult {
    return this.filtered(text, (terms) => {
      this.engine.hiding = terms;
      this.engine.dirt.links = true;
    });
  }

  private filtered(text: string, keep: (terms: Term[]) => void): FindResult {
    const parsed = parseFind(text);
    if (!parsed.ok) return parsed;
    keep(parsed.terms);
    this.engine.filter();
    this.engine.ask();
    const { shown, agents } = this.counts();
    return { ok: true, matches: shown, of: agents };
  }

  fit(): void {
    this.hand.fit();
  }

  zoomBy(factor: number): void {
    this.hand.zoomBy(factor);
  }

  /** 1 = the whole map fits. */
  get zoom(): number {
    return this.engine.camera.view.k / this.engine.camera.fitK;
  }

  set zoom(zoom: number) {
    this.zoomBy(zoom / this.zoom);
  }

  /** The host's panels over the canvas; fitted views stay clear of them. */
  set insets(insets: Insets) {
    const { camera, placed } = this.engine;
    const { top, right, bottom, left } = camera.insets;
    if (top === insets.top && right === insets.right && bottom === insets.bottom && left === insets.left)
      return;
    camera.insets = insets;
    this.engine.reform();
    if (placed && camera.untouched) this.engine.aim(performance.now(), SHIFT_MS);
  }

  get theme(): Theme {
    return this.engine.theme;
  }

  set theme(theme: Theme) {
    this.engine.theme = theme;
    this.engine.painter.reset();
    this.engine.ask();
  }

  get reducedMotion(): boolean {
    return this.engine.calm;
  }

  set reducedMotion(calm: boolean) {
    this.engine.calm = calm;
    if (calm) this.engine.traffic.clear();
    this.engine.ask();
  }

  /** Greys the picture while no new data can arrive. */
  get stale(): boolean {
    return this.isStale;
  }

  set stale(stale: boolean) {
    this.isStale = stale;
    const filter = stale ? "grayscale(1) opacity(0.55)" : "";
    this.canvas.style.filter = this.engine.painter.under.style.filter = filter;
  }

  // --- asking ---

  callouts(most = 3): Callout[] {
    const { scene, camera } = this.engine;
    return callouts(scene.agents.values(), camera.view, camera.size, most);
  }

  screenOf(id: string): { x: number; y: number; r: number } | null {
    const body = this.engine.bodyOf(id);
    if (!body) return null;
    const { view, size } = this.engine.camera;
    return { ...toScreen(view, size, body.x, body.y), r: radiusOf(body) * view.k };
  }

  stats(): Stats {
    return this.engine.watch.read();
  }

  resetStats(): void {
    this.engine.watch.reset();
  }

  private watchSize(): () => void {
    const box = this.canvas.parentElement ?? this.canvas;
    const measure = () => this.engine.resize(box.clientWidth, box.clientHeight, window.devicePixelRatio);
    const seen = new ResizeObserver(measure);
    seen.observe(box);
    measure();
    return () => seen.disconnect();
  }
}
