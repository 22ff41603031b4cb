// The camera over time: moves to views in a short, interruptible animation, or at once with reduced motion. A
// gesture always overrides a movement under way.
import {
  type Box,
  between,
  clamped,
  easeInOut,
  easeOut,
  fitted,
  floorOf,
  type Insets,
  type Size,
  type View,
  zoomedAbout,
} from "./zoom";

const HEADER = 40;

export class Camera {
  view: View = { x: 0, y: 0, k: 1 };
  size: Size = { width: 1, height: 1 };
  insets: Insets = { top: 0, right: 0, bottom: 0, left: 0 };
  box: Box = { x0: -1, y0: -1, x1: 1, y1: 1 };
  /** Not moved by hand since it was fitted: it follows the mesh as that grows. */
  untouched = true;
  private way: { from: View; to: View; begun: number; lasts: number } | null = null;

  get fitK(): number {
    return this.whole().k;
  }

  get moving(): boolean {
    return this.way !== null;
  }

  whole(): View {
    return fitted(this.box, this.size, this.clear());
  }

  over(box: Box, mostK: number): View {
    return fitted(box, this.size, this.clear(), mostK);
  }

  /** The names of the topmost hulls are drawn above them. */
  private clear(): Insets {
    return { ...this.insets, top: this.insets.top + HEADER };
  }

  go(to: View, nowMs: number, lasts: number): void {
    const end = clamped(to, this.box, floorOf(this.fitK));
    if (lasts <= 0) {
      this.view = end;
      this.way = null;
    } else this.way = { from: this.view, to: end, begun: nowMs, lasts };
  }

  /** True if the view changed. */
  step(nowMs: number): boolean {
    if (!this.way) return false;
    const { from, to, begun, lasts } = this.way;
    const t = Math.max(0, Math.min(1, (nowMs - begun) / lasts));
    this.view = between(from, to, lasts > 300 ? easeInOut(t) : easeOut(t));
    if (t >= 1) this.way = null;
    return true;
  }

  drag(dx: number, dy: number): void {
    this.touch({ ...this.view, x: this.view.x - dx / this.view.k, y: this.view.y - dy / this.view.k });
  }

  zoomAbout(x: number, y: number, factor: number): void {
    this.touch(zoomedAbout(this.view, this.size, { x, y }, factor, floorOf(this.fitK)));
  }

  /** The view after a zoom about the centre of the free area; during a movement, relative to its target. */
  zoomedTo(factor: number): View {
    const from = this.way?.to ?? this.view;
    const x = this.insets.left + (this.size.width - this.insets.left - this.insets.right) / 2;
    const y = this.insets.top + (this.size.height - this.insets.top - this.insets.bottom) / 2;
    return zoomedAbout(from, this.size, { x, y }, factor, floorOf(this.fitK));
  }

  private touch(view: View): void {
    this.way = null;
    this.untouched = false;
    this.view = clamped(view, this.box, floorOf(this.fitK));
  }
}
