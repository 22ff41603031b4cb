// The camera's mathematics: fitted content is visible, the point under the pointer stays, no gesture loses
// the map.
import { describe, expect, it } from "vitest";
import { Camera } from "./camera";
import {
  AGENT_R,
  between,
  clamped,
  fitted,
  floorOf,
  levelAt,
  MAX_K,
  toScreen,
  toWorld,
  wheelFactor,
  zoomedAbout,
} from "./zoom";

const size = { width: 1_000, height: 600 };
const box = { x0: -800, y0: -300, x1: 800, y1: 500 };

describe("zoom", () => {
  it("fits a box whole and clear of the panels", () => {
    const inset = { top: 20, right: 300, bottom: 60, left: 10 };
    const view = fitted(box, size, inset);
    const a = toScreen(view, size, box.x0, box.y0);
    const b = toScreen(view, size, box.x1, box.y1);
    expect(a.x).toBeGreaterThanOrEqual(inset.left);
    expect(a.y).toBeGreaterThanOrEqual(inset.top);
    expect(b.x).toBeLessThanOrEqual(size.width - inset.right);
    expect(b.y).toBeLessThanOrEqual(size.height - inset.bottom);
  });

  it("keeps the point under the pointer where it is", () => {
    const view = { x: 40, y: -20, k: 0.7 };
    const before = toWorld(view, size, 210, 140);
    const after = toWorld(zoomedAbout(view, size, { x: 210, y: 140 }, 2.3, 0.01), size, 210, 140);
    expect(after.x).toBeCloseTo(before.x, 6);
    expect(after.y).toBeCloseTo(before.y, 6);
  });

  it("cannot be lost by zooming or dragging", () => {
    const view = clamped({ x: 9e6, y: -9e6, k: 1e6 }, box, 0.1);
    expect(view).toEqual({ x: 800, y: -300, k: MAX_K });
    expect(clamped({ x: 0, y: 0, k: 1e-6 }, box, 0.1).k).toBe(0.1);
  });

  it("shows clusters far out, types closer, agents near, and does not flicker in between", () => {
    expect(levelAt(0.05, null)).toBe("cluster");
    expect(levelAt(1.5 / AGENT_R, null)).toBe("group");
    expect(levelAt(1, null)).toBe("agent");
    const border = 2.4 / AGENT_R;
    expect(levelAt(border * 0.97, "agent")).toBe("agent");
    expect(levelAt(border * 0.97, "group")).toBe("group");
    expect(levelAt(border * 0.9, "agent")).toBe("group");
  });

  it("reaches the far level from a small mesh too", () => {
    expect(levelAt(floorOf(1.7), "agent")).toBe("cluster");
  });

  it("zooms in when the wheel goes up, faster when pinched, and never jumps", () => {
    const wheel = (deltaY: number, ctrlKey = false) => wheelFactor({ deltaY, deltaMode: 0, ctrlKey });
    expect(wheel(-100)).toBeGreaterThan(1);
    expect(wheel(100) * wheel(-100)).toBeCloseTo(1, 9);
    expect(wheel(-10, true)).toBeGreaterThan(wheel(-10));
    expect(wheel(-1e9)).toBeLessThan(2);
  });

  it("is halfway in scale at the square root", () => {
    expect(between({ x: 0, y: 0, k: 1 }, { x: 10, y: 0, k: 4 }, 0.5)).toEqual({ x: 5, y: 0, k: 2 });
  });
});

describe("the camera", () => {
  const made = () => {
    const camera = new Camera();
    camera.size = size;
    camera.box = box;
    camera.go(camera.whole(), 0, 0);
    return camera;
  };

  it("yields to a gesture while it moves", () => {
    const camera = made();
    camera.go({ x: 100, y: 100, k: 1 }, 0, 200);
    camera.step(100);
    expect(camera.moving).toBe(true);
    camera.drag(30, 0);
    expect(camera.moving).toBe(false);
    expect(camera.untouched).toBe(false);
    expect(camera.step(150)).toBe(false);
  });

  it("arrives and then requests no more frames", () => {
    const camera = made();
    camera.go({ x: 100, y: 100, k: 1 }, 0, 200);
    expect(camera.step(200)).toBe(true);
    expect(camera.view).toEqual({ x: 100, y: 100, k: 1 });
    expect(camera.step(216)).toBe(false);
  });

  it("jumps with reduced motion", () => {
    const camera = made();
    camera.go({ x: 50, y: 0, k: 1 }, 0, 0);
    expect(camera.view.x).toBe(50);
    expect(camera.moving).toBe(false);
  });
});
