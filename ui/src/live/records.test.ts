// The three rules of docs/guides/live.md for applying records: a snapshot replaces, the higher version wins,
// `removed` drops.
import { describe, expect, it } from "vitest";
import { type LiveFrame, type LiveRecord, Picture } from "./records";

const node = (id: string, version: number, more: Partial<LiveRecord> = {}): LiveRecord => ({
  kind: "node",
  id,
  version,
  ...more,
});
const frame = (type: LiveFrame["type"], seq: number, items: LiveRecord[]): LiveFrame => ({
  type,
  topic: "fleet",
  seq,
  items,
});

function held(...frames: LiveFrame[]): Picture {
  const picture = new Picture();
  for (const one of frames) picture.take(one);
  return picture;
}
const ids = (picture: Picture, kind = "node") => [...picture.of(kind).keys()].sort();

describe("Picture", () => {
  it("knows nothing before the first frame", () => {
    const picture = new Picture();
    expect([picture.ready, picture.seq, picture.of("node").size, picture.generation("node")]).toEqual([
      false,
      null,
      0,
      0,
    ]);
  });

  it("replaces everything of every kind by a snapshot", () => {
    const edge = { kind: "edge", id: "a → b", version: 3 };
    const picture = held(frame("snapshot", 5, [node("a", 5), edge]), frame("snapshot", 9, [node("c", 2)]));
    expect(ids(picture)).toEqual(["c"]);
    expect(ids(picture, "edge")).toEqual([]);
    expect(picture.seq).toBe(9);
  });

  it("accepts a lower version from a snapshot: another gateway restarts its count", () => {
    const picture = held(frame("snapshot", 100, [node("a", 100)]), frame("snapshot", 4, [node("a", 4)]));
    expect(picture.of("node").get("a")?.version).toBe(4);
    expect(picture.seq).toBe(4);
  });

  it.each([
    ["a higher", 8, "new"],
    ["the same", 7, "old"],
    ["a lower", 6, "old"],
  ])("of a delta keeps of %s version the right one", (_, version, state) => {
    const picture = held(
      frame("snapshot", 7, [node("a", 7, { state: "old" })]),
      frame("delta", 8, [node("a", version, { state: "new" })]),
    );
    expect(picture.of("node").get("a")?.state).toBe(state);
  });

  it("replaces items whole: nothing of the previous one stays", () => {
    const picture = held(
      frame("snapshot", 1, [node("a", 1, { reason: "loop", alarms: [1] })]),
      frame("delta", 2, [node("a", 2)]),
    );
    expect(picture.of("node").get("a")).toEqual(node("a", 2));
  });

  it("drops what is removed, but not by an older version", () => {
    const start = frame("snapshot", 5, [node("a", 5), node("b", 5)]);
    const picture = held(start);
    const change = picture.take(
      frame("delta", 6, [node("a", 6, { removed: true }), node("b", 4, { removed: true })]),
    );
    expect(ids(picture)).toEqual(["b"]);
    expect(change.dropped).toEqual([{ kind: "node", id: "a" }]);
  });

  it("reports what a frame changed and whether it replaced everything", () => {
    const picture = new Picture();
    expect(picture.take(frame("snapshot", 1, [node("a", 1)]))).toMatchObject({ whole: true, dropped: [] });
    const change = picture.take(frame("delta", 2, [node("a", 1), node("b", 2)]));
    expect(change.whole).toBe(false);
    expect(change.put.map((item) => item.id)).toEqual(["b"]);
  });

  it("keeps what it has at a resync: the snapshot that follows replaces it", () => {
    const picture = held(frame("snapshot", 5, [node("a", 5)]), frame("resync", 9, []));
    expect(ids(picture)).toEqual(["a"]);
    expect(picture.seq).toBe(5);
  });

  it("changes a kind's generation only when that kind changed", () => {
    const picture = held(frame("snapshot", 1, [node("a", 1), { kind: "edge", id: "e", version: 1 }]));
    const before = [picture.generation("node"), picture.generation("edge")];
    picture.take(frame("delta", 2, [node("a", 2)]));
    expect(picture.generation("node")).not.toBe(before[0]);
    expect(picture.generation("edge")).toBe(before[1]);
    const after = picture.generation("node");
    picture.take(frame("delta", 3, [node("a", 2)]));
    expect(picture.generation("node")).toBe(after);
  });

  it("changes the generation of a kind a snapshot no longer has", () => {
    const picture = held(frame("snapshot", 1, [node("a", 1)]));
    const before = picture.generation("node");
    picture.take(frame("snapshot", 2, []));
    expect(picture.generation("node")).not.toBe(before);
  });
});
