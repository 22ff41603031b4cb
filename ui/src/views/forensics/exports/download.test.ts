import { describe, expect, it } from "vitest";
import { downloadTo, manifestOf, type Progress, type Sink, sized } from "./download";

class Kept implements Sink {
  text = "";
  state = "open";
  most = 0;
  async write(piece: Uint8Array<ArrayBuffer>) {
    this.most = Math.max(this.most, piece.length);
    this.text += new TextDecoder().decode(piece);
  }
  async close() {
    this.state = "closed";
  }
  async abort() {
    this.state = "aborted";
  }
}

function stream(pieces: string[], fails = false): ReadableStream<Uint8Array<ArrayBuffer>> {
  const left = [...pieces];
  return new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) controller.enqueue(new TextEncoder().encode(piece));
      else if (fails) controller.error(new TypeError("network error"));
      else controller.close();
    },
  });
}

const end = (bytes: number) => `{"manifest":{"events":2,"file":"x.jsonl","bytes":${bytes}}}\n`;
const END = end(5);

describe("downloading an export", () => {
  it("passes every chunk on, counts lines, and reads the manifest from the last", async () => {
    const sink = new Kept();
    const heard: Progress[] = [];
    const { progress, tail } = await downloadTo(
      stream(["a\nb", "b\n", END.slice(0, 9), END.slice(9)]),
      sink,
      (now) => heard.push(now),
    );
    expect(sink).toMatchObject({ text: `a\nbb\n${END}`, state: "closed" });
    expect(progress.lines).toBe(3);
    expect(heard.map((now) => now.lines)).toEqual([1, 2, 2, 3]);
    expect(manifestOf(tail, progress.bytes)).toMatchObject({ events: 2, file: "x.jsonl" });
  });

  it("leaves nothing in the sink when interrupted", async () => {
    const sink = new Kept();
    await expect(downloadTo(stream(["a\n"], true), sink, () => undefined)).rejects.toThrow("network error");
    expect(sink.state).toBe("aborted");
  });

  it("finds the manifest with chunks of any size", async () => {
    const size = (1 << 19) + 1;
    const pieces = ["x".repeat(1 << 19), "\n", end(size)];
    const { progress, tail } = await downloadTo(stream(pieces), new Kept(), () => undefined);
    expect(manifestOf(tail, progress.bytes).events).toBe(2);
    expect(tail.length).toBeLessThanOrEqual(1 << 18);
  });

  it.each([
    ["no manifest", "a\nb\n"],
    ["half a line", END.slice(0, 20)],
    ["no newline", END.trimEnd()],
    ["nothing", ""],
    ["a line that is missing before it", `a\n${END}`],
  ])("with %s reports that it is incomplete", (_, text) =>
    expect(() => manifestOf(new TextEncoder().encode(text), text.length)).toThrow(/incomplete/),
  );

  it("formats sizes", () => {
    expect([999, 12_898_792, 310_000_000, 2.5e9].map(sized)).toEqual([
      "999 bytes",
      "12.9 MB",
      "310 MB",
      "2.5 GB",
    ]);
  });
});
