// Labels never overlap, and the most important are drawn first.
import { describe, expect, it } from "vitest";
import { type Block, block, write } from "./draw/blocks";
import { tail } from "./draw/text";
import { fakeCanvas } from "./fakeCanvas";
import { cut, measured, Room } from "./labels";
import { DARK } from "./palette";

const six = (_font: string, text: string): number => text.length * 6;
const label = (text: string, x: number, y: number, priority: number, more = {}): Block =>
  block(x, y, priority, [{ font: "f", px: 11, pieces: [{ text, colour: "#fff" }] }], six, more);

function written(blocks: Block[], discs = new Room()): string[] {
  const { ctx, written: log } = fakeCanvas();
  write(ctx, blocks, discs, DARK, six);
  return log;
}

describe("labels", () => {
  it("keep the more important one where two collide", () => {
    expect(written([label("busy", 100, 100, 1), label("selected", 104, 104, 9)])).toEqual(["selected"]);
  });

  it("keep clear of discs unless they lie on a plate", () => {
    const discs = new Room();
    discs.block(90, 90, 110, 110);
    expect(written([label("plain", 100, 100, 1)], discs)).toEqual([]);
    expect(written([label("alarm", 100, 100, 1, { plate: true })], discs)).toEqual(["alarm"]);
  });

  it("do not overlap among a thousand random ones", () => {
    const all = Array.from({ length: 1_000 }, (_, at) =>
      label(`a-${at}`, (at * 97) % 1_400, (at * 53) % 880, at % 7),
    );
    const kept = new Set(written([...all]));
    expect(kept.size).toBeGreaterThan(100);
    const shown = all.filter((one) => kept.has(one.lines[0]?.pieces[0]?.text ?? ""));
    const clash = (a: Block, b: Block) =>
      Math.abs(a.x - b.x) < (a.width + b.width) / 2 && a.y < b.y + b.height && b.y < a.y + a.height;
    const clashes = shown.filter((a, at) => shown.slice(at + 1).some((b) => clash(a, b)));
    expect(clashes).toEqual([]);
  });

  it("are measured once", () => {
    let asked = 0;
    const measure = measured((_font, text) => {
      asked += 1;
      return text.length;
    });
    for (let at = 0; at < 50; at++) measure("12px x", "researcher");
    expect(asked).toBe(1);
    measure("11px x", "researcher");
    expect(asked).toBe(2);
  });

  it("are cut with an ellipsis, and never longer than the limit", () => {
    expect(cut("researcher", "f", 200, six)).toBe("researcher");
    expect(cut("researcher", "f", 36, six)).toBe("resea…");
  });

  it("of agents keep the end of the name, which distinguishes them", () => {
    expect(tail("researcher-beta-3", "f", 40, six)).toBe("beta-3");
    expect(tail("writer-1", "f", 400, six)).toBe("writer-1");
    expect(tail("unbreakablename", "f", 36, six)).toBe("unbre…");
  });
});
