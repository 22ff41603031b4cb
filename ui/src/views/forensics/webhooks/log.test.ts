import { describe, expect, it } from "vitest";
import type { HookCallItem, HookItem, LoggedDelivery } from "~/protocol/openapi";
import { asked, type Entry, fits, folded, merged, ofCall, ofDelivery, readFilters, signatureOf } from "./log";

const SENT: LoggedDelivery = {
  delivery_id: "whd_1",
  endpoint_id: "whe_1",
  endpoint_name: "ops desk",
  endpoint_kind: "webhook",
  endpoint_removed: false,
  event_type: "gate_opened",
  sequence_number: 7,
  state: "waiting",
  attempts: 0,
  next_try_at: null,
  last_code: null,
  last_detail: null,
  created_at: "2026-11-16T12:00:00Z",
  ended_at: null,
};
const CALL = {
  call_id: "whc_1",
  hook_id: "whk_1",
  at: "2026-11-16T12:00:01Z",
  signature: "valid",
  outcome: "forwarded",
  reason: null,
  calls: 1,
  repeats: 0,
} as HookCallItem;
const HOOKS = [{ hook_id: "whk_1", name: "pull requests", scheme: "github" }] as HookItem[];

describe("outbound deliveries", () => {
  it.each([
    [{}, "pending", "not yet", "waiting"],
    [{ attempts: 1 }, "retrying", "signed", "waiting"],
    [{ attempts: 2, state: "delivered" as const }, "delivered", "signed", "done"],
    [{ attempts: 6, state: "dead" as const }, "dead", "signed", "dead"],
    [{ state: "dead" as const }, "dead", "never sent", "dead"],
    [{ attempts: 1, endpoint_kind: "email" as const }, "retrying", "not signed", "waiting"],
  ])("%j is %s, %s", (more, word, signature, group) => {
    const entry = ofDelivery({ ...SENT, ...more });
    expect([entry.state.word, entry.signature.word, entry.group]).toEqual([word, signature, group]);
  });
});

describe("inbound calls", () => {
  it.each([
    ["valid", null, "verified"],
    ["missing", "there is no header", "missing"],
    ["invalid", "no secret in force made this signature", "invalid"],
    ["invalid", "the time it was signed at lies outside the window", "expired"],
  ] as const)("%s (%s) is shown as %s", (signature, reason, word) => {
    expect(signatureOf({ signature, reason }).word).toBe(word);
  });

  it("is named by its hook, also when that was removed", () => {
    expect(ofCall(CALL, HOOKS)).toMatchObject({ who: "pull requests", event: "call of github", tries: 1 });
    expect(ofCall(CALL, [])).toMatchObject({ who: "a removed webhook", event: "call" });
    expect(ofCall({ ...CALL, outcome: "turned_away" }, HOOKS).group).toBe("refused");
  });
});

const row = (at: string, id = at): Entry => ({ ...ofDelivery({ ...SENT, delivery_id: id, created_at: at }) });

describe("two feeds", () => {
  it("are merged into one list, newest first, down to where one of them has more", () => {
    const one = { entries: ["9", "7", "5"].map((at) => row(at)), more: true };
    const other = { entries: ["8", "4", "2"].map((at) => row(at)), more: true };
    expect(merged([one, other])).toMatchObject({ behind: 0 });
    expect(merged([one, other]).entries.map((entry) => entry.at)).toEqual(["9", "8", "7", "5"]);
    const ended = merged([
      { ...one, more: false },
      { ...other, more: false },
    ]);
    expect(ended.behind).toBeNull();
    expect(ended.entries).toHaveLength(6);
  });

  it("fetch more of the one that is empty so far", () => {
    expect(
      merged([
        { entries: [], more: true },
        { entries: [row("1")], more: false },
      ]),
    ).toMatchObject({
      behind: 0,
      entries: [row("1")],
    });
  });
});

describe("a newer first page", () => {
  const fold = (seen: string[], items: string[], next: string | null) =>
    folded(
      seen,
      { items, next_cursor: next },
      (one) => one,
      (one) => one,
    );
  it("leaves no gap to the seen rows, and removes what it no longer contains", () => {
    expect(fold(["5", "4", "3", "2"], ["7", "6", "5", "4"], "x")).toEqual(["7", "6", "5", "4", "3", "2"]);
    expect(fold(["5", "4", "3", "2"], ["5", "3"], "x")).toEqual(["5", "3", "2"]);
    expect(fold(["5", "4"], ["5"], null)).toEqual(["5"]);
    expect(fold(["5", "4"], [], null)).toEqual([]);
  });
});

describe("filters", () => {
  it.each([
    [{}, true, true],
    [{ way: "out" }, true, false],
    [{ state: "dead" }, true, false],
    [{ state: "refused" }, false, true],
    [{ signature: "missing" }, false, true],
    [{ endpoint: "whk_1" }, false, true],
    [{ endpoint: "whe_1" }, true, false],
    [{ event: "gate_opened" }, true, false],
    [{ way: "sideways", state: "odd", signature: "odd" }, true, true],
  ])("%j queries outbound: %s, inbound: %s", (url, out, inward) => {
    expect(asked(readFilters(url as Record<string, string>))).toEqual({ out, in: inward });
  });

  it("match every word, in names, states and responses", () => {
    const entry = ofDelivery({
      ...SENT,
      attempts: 1,
      last_code: 500,
      last_detail: "the receiver returned 500",
    });
    expect(fits(entry, { q: "OPS 500 retrying", state: null })).toBe(true);
    expect(fits(entry, { q: "ops 204", state: null })).toBe(false);
    expect(fits(entry, { q: "", state: "done" })).toBe(false);
  });
});
