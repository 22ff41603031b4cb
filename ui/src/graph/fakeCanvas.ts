// A fake canvas for tests: accepts every call, draws nothing, and records the texts and call counts. Only
// tests import it; the real drawing is checked in a browser.
import type { Surface } from "./draw/stage";

export interface Pretend {
  canvas: HTMLCanvasElement;
  ctx: CanvasRenderingContext2D;
  /** Texts drawn since they were last read. */
  written: string[];
  calls: Map<string, number>;
}

export function fakeCanvas(width = 1_000, height = 600, log: string[] = []): Pretend {
  const calls = new Map<string, number>();
  const held: Record<string, unknown> = {};
  const listeners = new Map<string, (event: unknown) => void>();
  const canvas = {
    width,
    height,
    style: {},
    parentElement: { clientWidth: width, clientHeight: height },
    before() {},
    remove() {},
    animate: () => ({ finished: Promise.resolve() }),
    setPointerCapture() {},
    getBoundingClientRect: () => ({ left: 0, top: 0, width, height }),
    addEventListener: (name: string, hear: (event: unknown) => void) => listeners.set(name, hear),
    removeEventListener: (name: string) => listeners.delete(name),
    dispatch: (name: string, event: object) =>
      listeners.get(name)?.({ preventDefault() {}, stopPropagation() {}, type: name, ...event }),
    getContext: () => ctx,
  };
  const ctx = new Proxy(held, {
    get(_target, name: string) {
      if (name === "canvas") return canvas;
      if (name in held) return held[name];
      return (...given: unknown[]) => {
        calls.set(name, (calls.get(name) ?? 0) + 1);
        if (name === "fillText") log.push(String(given[0]));
        if (name === "measureText") return { width: String(given[0]).length * 6 };
        return undefined;
      };
    },
    set(_target, name: string, value) {
      held[name] = value;
      return true;
    },
  });
  return {
    canvas: canvas as unknown as HTMLCanvasElement,
    ctx: ctx as unknown as CanvasRenderingContext2D,
    written: log,
    calls,
  };
}

/** Offscreen surfaces that write into one shared log. */
export const surfaceFactory =
  (log: string[]) =>
  (width: number, height: number): Surface =>
    fakeCanvas(width, height, log);

/** Manual animation frames: nothing runs until a test runs it. */
export class Hands {
  asked = new Set<(nowMs: number) => void>();

  next(painter: (nowMs: number) => void): void {
    this.asked.add(painter);
  }

  /** Runs the next frame; returns how many callbacks were waiting. */
  run(nowMs: number): number {
    const due = [...this.asked];
    this.asked.clear();
    for (const painter of due) painter(nowMs);
    return due.length;
  }

  /** Runs frames until none is requested, or `most`; returns how many it took. */
  settle(fromMs: number, most = 400): number {
    for (let frame = 0; frame < most; frame++) if (this.run(fromMs + frame * 16) === 0) return frame;
    return most;
  }
}
