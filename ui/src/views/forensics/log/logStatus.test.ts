import { describe, expect, test } from "vitest";
import { logStatus, pace, witnessStatus } from "./logStatus";

describe("state of the log (S685)", () => {
  test.each([
    ["signed", 0, 0, "signed"],
    ["behind", 3, 0.4, "signed"],
    ["behind", 300, 60, "late"],
    ["refused", 9, 9, "not signed"],
  ] as const)("%s with %d unsigned for %d s is %s", (state, unsigned, unsigned_age_s, word) => {
    expect(logStatus({ state, unsigned, unsigned_age_s, detail: null }).word).toBe(word);
  });
});

describe("witnesses (S685)", () => {
  const peer = {
    asked: { state: "cosigned", detail: null, at: null },
    cosigned_size: 90,
    fork: null,
    url: "u",
  } as const;
  test("show how far behind they are and their last response", () => {
    expect(witnessStatus(peer, 100)).toMatchObject({ word: "cosigns", far: "10 entries behind" });
    expect(witnessStatus({ ...peer, cosigned_size: 100 }, 100).far).toBe("up to date");
    expect(witnessStatus({ ...peer, cosigned_size: null }, 100).far).toContain("nothing yet");
    for (const state of ["unreachable", "refused", "ahead", "never"] as const)
      expect(witnessStatus({ ...peer, asked: { ...peer.asked, state } }, 100).word).not.toBe("cosigns");
    const fork = { kind: "fork", size: 3, root: "", checkpoint: "", seen_at: "" } as const;
    expect(witnessStatus({ ...peer, fork }, 100)).toMatchObject({ tone: "alert", word: "saw a fork" });
  });
});

describe("pace (S684)", () => {
  test("is shown in events per second and time left", () => {
    expect(pace(50_000, 100_000, 2_000)).toEqual({
      percent: 50,
      rate: "25,000 events/s",
      left: "about 2 s left",
    });
    expect(pace(0, 100, 0)).toEqual({ percent: 0, rate: "0 events/s", left: "less than 1 s left" });
    expect(pace(100, 100, 1_000).left).toBe("");
  });
});
