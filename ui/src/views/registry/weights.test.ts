import { describe, expect, it } from "vitest";
import type { EdgeItem } from "~/protocol/openapi";
import {
  byInstances,
  effectOf,
  faultIn,
  hourOf,
  type Instance,
  isSame,
  moved,
  percent,
  preview,
  readDraft,
  sumSentence,
  weightsText,
} from "./weights";

const one = (agent_id: string, cluster_id: string | null, liveness: Instance["liveness"] = "healthy") => ({
  agent_id,
  entity_id: `agt_${agent_id}`,
  cluster_id,
  liveness,
});
const FLEET = [one("a1", "a"), one("a2", "a"), one("b1", "b"), one("c1", "c")];

describe("typed weights", () => {
  it.each([
    ["", /number/],
    ["ten", /not a number/],
    ["-1", /negative/],
    ["Infinity", /finite/],
  ])("%j is refused with a message", (text, words) => {
    expect(faultIn(text)).toMatch(words);
    const read = readDraft({ "cluster:a": text, "cluster:b": "1" });
    expect(read.weights).toBeNull();
    expect(Object.keys(read.faults)).toEqual(["cluster:a"]);
  });

  it("all zero and none at all are refused, a zero next to a weight is not", () => {
    expect(readDraft({ "cluster:a": "0", b: "0" }).fault).toMatch(/not all be zero/);
    expect(readDraft({}).fault).toMatch(/at least one target/);
    expect(readDraft({ "cluster:a": "0", b: "0.5" }).weights).toEqual({ "cluster:a": 0, b: 0.5 });
  });

  it("weights that do not add up to 100 are shown as shares", () => {
    expect(sumSentence(readDraft({ "cluster:a": "90", "cluster:b": "30" }))).toBe(
      "The weights add up to 120, not 100: the shares are 75 % a, 25 % b.",
    );
    expect(sumSentence(readDraft({ "cluster:a": "70", "cluster:b": "30" }))).toBeNull();
  });
});

describe("the effect (the router's law)", () => {
  it("without weights is even across healthy instances", () => {
    expect(effectOf(null, [...FLEET, one("z", "a", "zombie")]).agents).toEqual({
      a1: 0.25,
      a2: 0.25,
      b1: 0.25,
      c1: 0.25,
    });
    expect(effectOf(null, [one("u", "a", "unknown"), one("z", "a", "zombie")]).agents).toEqual({ u: 1 });
  });

  it("shares by weight, then evenly within a target; agents without a target get none", () => {
    const { targets, agents, notes } = effectOf({ "cluster:a": 60, "cluster:b": 20 }, FLEET);
    expect(targets).toEqual({ "cluster:a": 0.75, "cluster:b": 0.25 });
    expect(agents).toEqual({ a1: 0.375, a2: 0.375, b1: 0.25 });
    expect(notes.join()).toMatch(/1 instance without a target gets nothing/);
  });

  it("a target without a live instance passes its share to the others", () => {
    const { targets, notes } = effectOf({ "cluster:a": 50, "cluster:gone": 50 }, FLEET);
    expect(targets).toEqual({ "cluster:a": 1, "cluster:gone": 0 });
    expect(notes.join()).toMatch(/gone has no instance/);
    const sick = [one("a1", "a", "zombie"), one("b1", "b")];
    expect(effectOf({ "cluster:a": 90, "cluster:b": 10 }, sick).targets).toEqual({
      "cluster:a": 0,
      "cluster:b": 1,
    });
  });

  it("agents without a target are used only when no target has an instance; weight 0 never is", () => {
    const { rest, agents } = effectOf({ "cluster:gone": 1, "cluster:a": 0 }, FLEET);
    expect(rest).toBe(1);
    expect(agents).toEqual({ b1: 0.5, c1: 0.5 });
    expect(effectOf({ "cluster:a": 0, b1: 1 }, [one("a1", "a")]).notes.join()).toMatch(
      /queued until one registers/,
    );
  });

  it("an agent is a target by its name or its id", () => {
    expect(effectOf({ b1: 1, agt_c1: 3 }, FLEET).agents).toEqual({ b1: 0.25, c1: 0.75 });
  });

  it("without instances work is queued, and no share is computed", () => {
    const { agents, notes } = effectOf({ "cluster:a": 1 }, [one("x", "a", "evicted")]);
    expect(agents).toEqual({});
    expect(notes.join()).toMatch(/queued until one registers/);
  });
});

describe("the preview", () => {
  const edges = [
    { to: "a1", messages: 30 },
    { to: "b1", messages: 10 },
    { to: "another agent", messages: 99 },
    { to: null, messages: 5 },
  ] as EdgeItem[];

  it("applies the new split to the last hour's messages", () => {
    const hour = hourOf(edges, FLEET);
    expect(hour.total).toBe(40);
    const lines = preview(null, { "cluster:a": 25, "cluster:b": 75 }, FLEET, hour);
    expect(lines.map(({ target, now, next, got, would }) => [target, now, next, got, would])).toEqual([
      ["cluster:a", 0.5, 0.25, 30, 10],
      ["cluster:b", 0.25, 0.75, 10, 30],
      ["", 0.25, 0, 0, 0],
    ]);
  });

  it("shows a removed target with what it loses", () => {
    const lines = preview({ "cluster:c": 1 }, { "cluster:a": 1 }, FLEET, { total: 0, agents: {} });
    expect(lines.find((line) => line.target === "cluster:c")).toMatchObject({ now: 1, next: 0 });
  });
});

describe("manual changes", () => {
  it("a moved border gives one side what the other loses, and stops at zero", () => {
    expect(moved({ a: "70", b: "30" }, "a", "b", -20)).toEqual({ a: "50", b: "50" });
    expect(moved({ a: "70", b: "30" }, "a", "b", 99)).toEqual({ a: "100", b: "0" });
    expect(moved({ a: "x", b: "30" }, "a", "b", 1)).toEqual({ a: "x", b: "30" });
  });

  it("even weights are whole percents that add up to 100", () => {
    const weights = byInstances(FLEET.slice(1));
    expect(weights).toEqual({ "cluster:a": 34, "cluster:b": 33, "cluster:c": 33 });
  });

  it("the button lists the largest first", () => {
    expect(weightsText({ "cluster:a": 1, "cluster:b": 3, c: 0 })).toBe("75 % to b, 25 % to a and 1 more");
    expect(percent(0.00001)).toBe("< 0.1 %");
    expect(percent(0.625)).toBe("62.5 %");
  });

  it("weights are the same whatever their order", () => {
    expect(isSame({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
    expect(isSame({ a: 1 }, { a: 1, b: 0 })).toBe(false);
  });
});
