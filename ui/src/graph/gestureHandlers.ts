// What gestures do to the map. Clicks are reported to the host and change nothing: the host's URL is the
// state. Opening a hull or a group drills down into it; arrow keys move the selection; both are reported, so
// that the host can follow.
import type { AgentGroup } from "./bodies";
import { CAMERA_MS, type Engine, SHIFT_MS } from "./engine";
import type { Meanings } from "./gestures";
import { neighbour } from "./hit";
import { linkHit } from "./picking";
import type { Focus, Hit, MapObject } from "./types";
import { toScreen } from "./zoom";

export interface Acts {
  focus(focus: Focus | null): void;
  select(thing: MapObject): void;
  up(): void;
}

export function gestureHandlers(engine: Engine, acts: Acts): Meanings {
  const { camera, picking, scene, events } = engine;
  const touched = () => {
    engine.touchedAt = performance.now();
    engine.ask();
  };
  const at = (x: number, y: number, touch: boolean) =>
    picking.at(scene, camera.view, camera.size, x, y, touch);
  const enter = (bunch: AgentGroup, hit: Hit) => {
    events.emit("open", hit);
    acts.focus(focusOf(bunch));
  };
  return {
    drag(dx, dy) {
      camera.drag(dx, dy);
      touched();
    },
    zoomAbout(x, y, factor) {
      camera.zoomAbout(x, y, factor);
      touched();
    },
    rest: () => engine.ask(),
    click: (x, y, touch) => events.emit("click", at(x, y, touch)),
    open(x, y) {
      const hit = at(x, y, false);
      if (hit && hit.kind !== "group") {
        events.emit("open", hit);
        return;
      }
      const bunch = picking.bunchAt(scene, camera.view, camera.size, x, y, engine.focus !== null);
      if (bunch) enter(bunch, { kind: "group", id: bunch.id, x, y });
    },
    hover(x, y) {
      engine.pointer = { x, y };
      engine.ask();
    },
    leave() {
      engine.pointer = null;
      engine.hover(null);
    },
    arrow(direction) {
      const from = engine.selected ? engine.bodyOf(engine.selected.id) : undefined;
      const shown = [...scene.bodies()].filter((one) => !one.hidden);
      const next = from ? neighbour(shown, from, direction) : nearest(shown, camera.view);
      if (!next) return;
      acts.select({ kind: "totals" in next ? "group" : "node", id: next.id });
    },
    zoomBy(factor) {
      camera.untouched = false;
      camera.go(camera.zoomedTo(factor), performance.now(), engine.calm ? 0 : CAMERA_MS);
      engine.ask();
    },
    fit: () => engine.aim(performance.now(), SHIFT_MS),
    openSelected() {
      const { selected } = engine;
      if (!selected) return;
      const link = selected.kind === "edge" ? engine.linkNamed(selected.id) : undefined;
      if (link)
        events.emit("open", { ...linkHit(link), x: camera.size.width / 2, y: camera.size.height / 2 });
      const body = engine.bodyOf(selected.id);
      if (!body || link) return;
      const where = toScreen(camera.view, camera.size, body.x, body.y);
      if ("totals" in body) enter(body, { kind: "group", id: body.id, ...where });
      else events.emit("open", { kind: "node", id: body.id, ...where });
    },
    up: () => acts.up(),
  };
}

/** What drilling down into a hull or a group shows. */
export function focusOf(bunch: Pick<AgentGroup, "level" | "cluster" | "type">): Focus {
  if (bunch.level === "group") return { cluster: bunch.cluster ?? "", group: bunch.type ?? "" };
  return bunch.type === null ? { cluster: bunch.cluster ?? "" } : { group: bunch.type };
}

function nearest<B extends { x: number; y: number; dim: boolean }>(
  bodies: readonly B[],
  to: { x: number; y: number },
): B | null {
  let best: B | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const one of bodies) {
    const far = Math.hypot(one.x - to.x, one.y - to.y);
    if (!one.dim && far < least) {
      least = far;
      best = one;
    }
  }
  return best;
}
