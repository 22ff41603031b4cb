// One owner of the animation frame: one request a frame however many callers, none while idle.
import { describe, expect, it } from "vitest";
import { type Clock, Frames } from "./frames";

class HandClock implements Clock {
  asked = 0;
  private waiting: ((nowMs: number) => void)[] = [];
  private nowMs = 0;

  request(run: (nowMs: number) => void): number {
    this.asked += 1;
    this.waiting.push(run);
    return this.asked;
  }

  cancel(): void {
    this.waiting = [];
  }

  tick(): void {
    this.nowMs += 16;
    const due = this.waiting;
    this.waiting = [];
    for (const run of due) run(this.nowMs);
  }

  get pending(): number {
    return this.waiting.length;
  }
}

function made() {
  const clock = new HandClock();
  return { clock, frames: new Frames(clock), ran: [] as string[] };
}

describe("Frames", () => {
  it("requests nothing while idle", () => {
    const { clock } = made();
    clock.tick();
    expect(clock.asked).toBe(0);
  });

  it("requests once for many, and runs each once", () => {
    const { clock, frames, ran } = made();
    const paint = () => ran.push("a");
    frames.next(paint);
    frames.next(paint);
    frames.next(() => ran.push("b"));
    expect(clock.pending).toBe(1);
    clock.tick();
    expect(ran).toEqual(["a", "b"]);
    expect(clock.pending).toBe(0);
  });

  it("runs a continuous painter every frame with one request each, until it unsubscribes", () => {
    const { clock, frames, ran } = made();
    const leave = frames.every(() => ran.push("s"));
    frames.every(() => ran.push("t"))();
    for (let n = 0; n < 3; n += 1) {
      clock.tick();
      expect(clock.pending).toBe(1);
    }
    expect(ran).toEqual(["s", "s", "s"]);
    leave();
    clock.tick();
    expect(ran).toEqual(["s", "s", "s"]);
    expect(clock.pending).toBe(0);
  });

  it("runs what is requested during a frame in the next one, not in this", () => {
    const { clock, frames, ran } = made();
    const again = () => {
      ran.push("x");
      if (ran.length < 2) frames.next(again);
    };
    frames.next(again);
    clock.tick();
    expect(ran).toEqual(["x"]);
    expect(clock.pending).toBe(1);
    clock.tick();
    expect(ran).toEqual(["x", "x"]);
    expect(clock.pending).toBe(0);
  });

  it("continues after a painter that failed, and still requests the next frame", () => {
    const { clock, frames, ran } = made();
    frames.every(() => {
      throw new Error("broken painter");
    });
    frames.every(() => ran.push("good"));
    expect(() => clock.tick()).toThrow("broken painter");
    expect(ran).toEqual(["good"]);
    expect(clock.pending).toBe(1);
  });

  it("passes the time of the frame", () => {
    const { clock, frames } = made();
    const times: number[] = [];
    frames.next((nowMs) => times.push(nowMs));
    clock.tick();
    expect(times).toEqual([16]);
  });
});
