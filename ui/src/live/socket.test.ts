// The page's one socket: subscriptions, reconnecting, and when it may resume.
import { describe, expect, it } from "vitest";
import type { LiveFrame } from "./records";
import { type Connection, LiveSocket, type Wire } from "./socket";

class HandWire implements Wire {
  sent: { op: string; topics: string[]; after?: number }[] = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(): void {
    this.closed = true;
    this.onclose?.({ code: 1000, reason: "" });
  }

  says(frame: Partial<LiveFrame> | { type: "error"; problem: string }): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  drops(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason });
  }
}

function made() {
  const wires: HandWire[] = [];
  const pauses: number[] = [];
  const states: Connection[] = [];
  let due: (() => void) | null = null;
  let nowMs = 1_000;
  const socket = new LiveSocket({
    open: () => {
      wires.push(new HandWire());
      return wires.at(-1) as HandWire;
    },
    later: (run, ms) => {
      pauses.push(ms);
      due = run;
      return ms;
    },
    forget: () => {
      due = null;
    },
    nowMs: () => nowMs,
  });
  socket.watch((state) => states.push(state));
  return {
    socket,
    wires,
    pauses,
    states,
    wire: () => wires.at(-1) as HandWire,
    wake: () => due?.(),
    at: (ms: number) => {
      nowMs = ms;
    },
  };
}

const snapshot = (topic: string, seq: number): Partial<LiveFrame> => ({
  type: "snapshot",
  topic,
  seq,
  items: [],
});
const settled = () => Promise.resolve();
const nothing = () => undefined;

describe("LiveSocket", () => {
  it("opens with the first topic and subscribes to all of them at once", async () => {
    const { socket, wires, wire } = made();
    expect(wires).toHaveLength(0);
    socket.follow("fleet", nothing);
    socket.follow("sessions", nothing);
    socket.hear("messages", nothing);
    expect(wires).toHaveLength(1);
    wire().onopen?.();
    await settled();
    expect(wire().sent).toEqual([{ op: "subscribe", topics: ["fleet", "sessions", "messages"] }]);
  });

  it("subscribes once when a mounting view follows three topics", async () => {
    const { socket, wire } = made();
    socket.follow("fleet", nothing);
    wire().onopen?.();
    socket.follow("sessions", nothing);
    socket.follow("waiting", nothing);
    await settled();
    expect(wire().sent.map((frame) => frame.topics)).toEqual([["fleet"], ["fleet", "sessions", "waiting"]]);
  });

  it("does not subscribe again to a topic that is already followed", async () => {
    const { socket, wire } = made();
    socket.follow("fleet", nothing);
    wire().onopen?.();
    socket.follow("fleet", nothing);
    await settled();
    expect(wire().sent).toHaveLength(1);
  });

  it("gives each listener the frames of its topic only", async () => {
    const { socket, wire } = made();
    const heard: string[] = [];
    socket.follow("fleet", (_, picture) => heard.push(`fleet ${picture.seq}`));
    socket.hear("messages", (frame) => heard.push(`messages ${frame.seq}`));
    wire().onopen?.();
    wire().says(snapshot("fleet", 5));
    wire().says({ type: "event", topic: "messages", seq: 6, items: [] });
    wire().says(snapshot("sessions", 9));
    expect(heard).toEqual(["fleet 5", "messages 6"]);
  });

  it("resumes after a reconnect from the lowest of its topics", () => {
    const { socket, wire, wake } = made();
    socket.follow("fleet", nothing);
    socket.follow("sessions", nothing);
    wire().onopen?.();
    wire().says(snapshot("fleet", 812));
    wire().says(snapshot("sessions", 800));
    wire().drops();
    wake();
    wire().onopen?.();
    expect(wire().sent).toEqual([{ op: "subscribe", topics: ["fleet", "sessions"], after: 800 }]);
  });

  it.each([
    ["a topic it has no snapshot of", (socket: LiveSocket) => socket.follow("sessions", nothing)],
    ["a topic of events, which would be repeated", (socket: LiveSocket) => socket.hear("messages", nothing)],
  ])("never resumes with %s", (_, add) => {
    const { socket, wire, wake } = made();
    socket.follow("fleet", nothing);
    wire().onopen?.();
    wire().says(snapshot("fleet", 812));
    add(socket);
    wire().drops();
    wake();
    wire().onopen?.();
    expect(wire().sent[0]).not.toHaveProperty("after");
  });

  it("reconnects with exponential backoff, reset once a frame arrives", () => {
    const { socket, wire, wake, pauses } = made();
    socket.follow("fleet", nothing);
    for (let n = 0; n < 8; n += 1) {
      wire().drops();
      wake();
    }
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    wire().onopen?.();
    wire().says(snapshot("fleet", 1));
    wire().drops();
    expect(pauses.at(-1)).toBe(250);
  });

  it("reconnects at once when the browser is online again", () => {
    const { socket, wires, wire } = made();
    socket.follow("fleet", nothing);
    wire().drops();
    socket.retry();
    expect(wires).toHaveLength(2);
    socket.retry();
    expect(wires).toHaveLength(2);
  });

  it.each([4401, 4403])("does not reconnect by itself when refused (%i), only on request", (code) => {
    const { socket, wires, wire, states, pauses } = made();
    socket.follow("fleet", nothing);
    wire().drops(code, "sign in");
    expect(states.at(-1)).toBe("refused");
    expect(pauses).toEqual([]);
    expect(socket.problem).toBe("sign in");
    socket.retry();
    expect(wires).toHaveLength(2);
  });

  it("reports its states in order and each once", () => {
    const { socket, wire, wake, states } = made();
    socket.follow("fleet", nothing);
    wire().onopen?.();
    wire().says(snapshot("fleet", 1));
    wire().says(snapshot("fleet", 2));
    wire().drops();
    wake();
    expect(states).toEqual(["connecting", "live", "waiting", "connecting"]);
  });

  it("ends a topic with its last listener and the socket with its last topic", async () => {
    const { socket, wire, states } = made();
    const leaveFirst = socket.follow("fleet", nothing);
    const leaveSecond = socket.follow("fleet", nothing);
    const leaveOther = socket.follow("sessions", nothing);
    wire().onopen?.();
    leaveFirst();
    await settled();
    expect(wire().sent).toHaveLength(1);
    leaveSecond();
    await settled();
    expect(wire().sent.at(-1)?.topics).toEqual(["sessions"]);
    leaveOther();
    expect(wire().closed).toBe(true);
    expect(states.at(-1)).toBe("closed");
  });

  it("does not reconnect after the last listener left while it was closed", () => {
    const { socket, wires, wire, wake } = made();
    const leave = socket.follow("fleet", nothing);
    wire().drops();
    leave();
    wake();
    expect(wires).toHaveLength(1);
  });

  it("unsubscribes once, however often it is called", () => {
    const { socket } = made();
    const leave = socket.follow("fleet", nothing);
    leave();
    const heard: number[] = [];
    socket.follow("fleet", (_, picture) => heard.push(picture.seq ?? 0));
    leave();
    expect(socket.picture("fleet")).not.toBeNull();
  });

  it("keeps the sentence of a refused subscription and continues", () => {
    const { socket, wire } = made();
    const heard: number[] = [];
    socket.follow("fleet", (_, picture) => heard.push(picture.seq ?? 0));
    wire().onopen?.();
    wire().says({ type: "error", problem: "there is no topic nonsense" });
    expect(socket.problem).toBe("there is no topic nonsense");
    wire().says(snapshot("fleet", 3));
    expect(heard).toEqual([3]);
  });

  it("knows when it last received a frame", () => {
    const { socket, wire, at } = made();
    socket.follow("fleet", nothing);
    expect(socket.heardMs).toBeNull();
    wire().onopen?.();
    at(5_000);
    wire().says(snapshot("fleet", 1));
    expect(socket.heardMs).toBe(5_000);
  });
});
