// Toast messages for command answers, and how long toasts stay.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Commanded } from "~/protocol/openapi";
import { distinct } from "./registry";
import { approvedText, rejectedText } from "./session";
import { currentToasts, dismissToast, pauseTimer, resumeTimer, showToast } from "./toasts";

const ANSWER: Commanded = { agent_id: "alice", session_id: "s1", status: "approved" };

describe("what an approval did", () => {
  it.each([
    [{ needed: 1, approvals: ["u1"], state: "forwarded" }, "Approved and sent unchanged."],
    [{ needed: 2, approvals: ["u1"], state: "held" }, "Your approval is recorded; 1 more is required."],
    [{ needed: 3, approvals: ["u1"], state: "held" }, "Your approval is recorded; 2 more are required."],
    [
      { needed: 1, approvals: ["u1"], state: "held" },
      "Approved; it will be sent when the agent's pause or the kill switch ends.",
    ],
    [{}, "Approved and sent unchanged."],
  ])("%j: %s", (answer, text) => {
    expect(approvedText({ ...ANSWER, ...answer }, "unchanged")).toBe(text);
  });
});

describe("what a reject did", () => {
  it.each([
    [1, "Rejected; alice is notified."],
    [2, "Rejected; alice is notified. 1 dependent message was rejected too."],
    [4, "Rejected; alice is notified. 3 dependent messages were rejected too."],
  ])("%i in all: %s", (rejected, text) => {
    expect(rejectedText({ ...ANSWER, rejected })).toBe(text);
  });
});

describe("toasts", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    for (const toast of currentToasts()) dismissToast(toast.id);
    vi.useRealTimers();
  });

  it("expire by themselves, but errors stay until they are closed", () => {
    showToast({ tone: "good", text: "done" });
    const bad = showToast({ tone: "alert", text: "not done" });
    vi.advanceTimersByTime(60_000);
    expect(currentToasts().map((toast) => toast.text)).toEqual(["not done"]);
    dismissToast(bad);
    expect(currentToasts()).toEqual([]);
  });

  it("do not expire while the pointer is over them", () => {
    const id = showToast({ tone: "good", text: "done" });
    pauseTimer(id);
    vi.advanceTimersByTime(60_000);
    expect(currentToasts()).toHaveLength(1);
    resumeTimer(id);
    vi.advanceTimersByTime(60_000);
    expect(currentToasts()).toEqual([]);
  });

  it("are at most five; the oldest is removed first", () => {
    for (let n = 1; n <= 7; n += 1) showToast({ tone: "alert", text: String(n) });
    expect(currentToasts().map((toast) => toast.text)).toEqual(["3", "4", "5", "6", "7"]);
  });
});

describe("versions to save", () => {
  it("list each version once, whatever its spelling", () => {
    const rows = [
      { version: "v2.0.0", status: "current" as const },
      { version: "1.0.0", status: "retired" as const },
      { version: "2.0.0", status: "current" as const },
    ];
    expect(distinct(rows).map((row) => row.version)).toEqual(["v2.0.0", "1.0.0"]);
  });
});
