// Pointer, wheel, pinch and key events on the canvas, translated to their meaning. A press that hardly moves
// is a click; one finger or the mouse drags, two fingers pinch. Escape is not handled here: it belongs to the
// shell.
import type { Direction } from "./hit";
import { wheelFactor } from "./zoom";

export interface Meanings {
  drag(dx: number, dy: number): void;
  zoomAbout(x: number, y: number, factor: number): void;
  /** `touch`: a finger is wider than a pointer. */
  click(x: number, y: number, touch: boolean): void;
  open(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  rest(): void;
  arrow(direction: Direction): void;
  zoomBy(factor: number): void;
  fit(): void;
  openSelected(): void;
  up(): void;
}

const CLICK_PX = 5;
const ARROWS: Record<string, Direction> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

export function listen(canvas: HTMLCanvasElement, means: Meanings): () => void {
  const held = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  const at = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, at(event));
    if (held.size === 1) travelled = 0;
  };
  const move = (event: PointerEvent) => {
    const now = at(event);
    const before = held.get(event.pointerId);
    if (!before) {
      if (held.size === 0 && event.pointerType !== "touch") means.hover(now.x, now.y);
      return;
    }
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (held.size === 1) {
      if (travelled > CLICK_PX) {
        means.drag(now.x - before.x, now.y - before.y);
        canvas.style.cursor = "grabbing";
      }
    } else pinch(event.pointerId, before, now);
    held.set(event.pointerId, now);
  };
  const pinch = (id: number, before: { x: number; y: number }, now: { x: number; y: number }) => {
    const other = [...held].find(([key]) => key !== id)?.[1];
    if (!other) return;
    const was = Math.hypot(before.x - other.x, before.y - other.y) || 1;
    const is = Math.hypot(now.x - other.x, now.y - other.y) || 1;
    means.drag((now.x - before.x) / 2, (now.y - before.y) / 2);
    means.zoomAbout((now.x + other.x) / 2, (now.y + other.y) / 2, is / was);
  };
  const up = (event: PointerEvent) => {
    if (!held.delete(event.pointerId)) return;
    canvas.style.cursor = "";
    if (held.size > 0) return;
    if (event.type === "pointerup" && travelled <= CLICK_PX) {
      const { x, y } = at(event);
      means.click(x, y, event.pointerType === "touch");
    } else means.rest();
  };
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const { x, y } = at(event);
    means.zoomAbout(x, y, wheelFactor(event));
  };
  const twice = (event: MouseEvent) => {
    const { x, y } = at(event);
    means.open(x, y);
  };
  const leave = () => means.leave();
  const key = (event: KeyboardEvent) => {
    if (pressed(event, means)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("dblclick", twice);
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("keydown", key);
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("pointercancel", up);
    canvas.removeEventListener("pointerleave", leave);
    canvas.removeEventListener("dblclick", twice);
    canvas.removeEventListener("wheel", wheel);
    canvas.removeEventListener("keydown", key);
  };
}

/** True if the key means something here. */
export function pressed(
  event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">,
  means: Meanings,
): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const direction = ARROWS[event.key];
  if (direction) means.arrow(direction);
  else if (event.key === "+" || event.key === "=") means.zoomBy(1.4);
  else if (event.key === "-") means.zoomBy(1 / 1.4);
  else if (event.key === "0") means.fit();
  else if (event.key === "Enter") means.openSelected();
  else if (event.key === "Backspace") means.up();
  else return false;
  return true;
}
