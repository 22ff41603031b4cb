// What a toast says of an answer, and how long toasts stay.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Commanded } from "~/protocol/openapi";
import { passing, refusing } from "./acts";
import { distinct } from "./registry";
import { hold, letGo, saidNow, say, unsay } from "./toasts";

const ANSWER: Commanded = { agent_id: "alice", session_id: "s1", status: "approved" };

describe("what an approval did", () => {
  it.each([
    [{ needed: 1, approvals: ["u1"], state: "forwarded" }, "Forwarded as it stands."],
    [{ needed: 2, approvals: ["u1"], state: "held" }, "Your yes counts; 1 more person must approve it."],
    [{ needed: 3, approvals: ["u1"], state: "held" }, "Your yes counts; 2 more people must approve it."],
    [
      { needed: 1, approvals: ["u1"], state: "held" },
      "Approved; it leaves when the agent's pause or the kill-switch ends.",
    ],
    [{}, "Forwarded as it stands."],
  ])("%j: %s", (told, text) => {
    expect(passing({ ...ANSWER, ...told }, "as it stands")).toBe(text);
  });
});

describe("what a reject did", () => {
  it.each([
    [1, "Never forwarded; alice is told."],
    [2, "Never forwarded; alice is told. So is one that followed from it."],
    [4, "Never forwarded; alice is told. So are 3 that followed from it."],
  ])("%i in all: %s", (rejected, text) => {
    expect(refusing({ ...ANSWER, rejected })).toBe(text);
  });
});

describe("toasts", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    for (const toast of saidNow()) unsay(toast.id);
    vi.useRealTimers();
  });

  it("go by themselves, but what went wrong stays until it is closed", () => {
    say({ tone: "good", text: "done" });
    const bad = say({ tone: "alert", text: "not done" });
    vi.advanceTimersByTime(60_000);
    expect(saidNow().map((toast) => toast.text)).toEqual(["not done"]);
    unsay(bad);
    expect(saidNow()).toEqual([]);
  });

  it("wait while one points at them", () => {
    const id = say({ tone: "good", text: "done" });
    hold(id);
    vi.advanceTimersByTime(60_000);
    expect(saidNow()).toHaveLength(1);
    letGo(id);
    vi.advanceTimersByTime(60_000);
    expect(saidNow()).toEqual([]);
  });

  it("are never more than five, the oldest goes first", () => {
    for (let n = 1; n <= 7; n += 1) say({ tone: "alert", text: String(n) });
    expect(saidNow().map((toast) => toast.text)).toEqual(["3", "4", "5", "6", "7"]);
  });
});

describe("versions to save", () => {
  it("name each once, however it is spelt", () => {
    const rows = [
      { version: "v2.0.0", status: "current" as const },
      { version: "1.0.0", status: "retired" as const },
      { version: "2.0.0", status: "current" as const },
    ];
    expect(distinct(rows).map((row) => row.version)).toEqual(["v2.0.0", "1.0.0"]);
  });
});
