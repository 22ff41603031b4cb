import { describe, expect, it } from "vitest";
import { command, graph, graphWith, step } from "./fixture";
import { firstGate, firstLoop, found, graphOf, stepNamed } from "./graph";
import { walk } from "./navigation";
import { painting, paintOf } from "./paint";

describe("a graph folded from records", () => {
  it("is the same for any order of the records", () => {
    const steps = [
      step("a", 1),
      step("b", 2, { parent: "a", depth: 1 }),
      step("c", 3, { parent: "a", depth: 1 }),
    ];
    const link = [
      { from: "a", to: "c", relation: "declared" },
      { from: "a", to: "b", relation: "inferred" },
    ];
    const none = { intervention: [], refused: [], agent: [], summary: [] };
    const one = graphOf({ step: steps, link, ...none });
    const other = graphOf({ step: steps.toReversed(), link: link.toReversed(), ...none });
    expect(other.steps).toEqual(one.steps);
    expect(other.children).toEqual(one.children);
    expect(one.children.get("a")).toEqual(["b", "c"]);
    expect(other.branch).toEqual(one.branch);
  });

  it("counts a join once, in the branch of its first parent, and the roots add up to everything", () => {
    const it = graph("a", "b<a", "c<a", "d<b,c", "x");
    expect(it.branch.get("b")).toBe(2);
    expect(it.branch.get("c")).toBe(1);
    expect((it.branch.get("a") ?? 0) + (it.branch.get("x") ?? 0)).toBe(5);
    expect(it.parents.get("d")).toEqual(["b", "c"]);
  });

  it("attaches interventions to their step, oldest first, and never treats their edge as a cause", () => {
    const link = ["i2", "i1"].map((to) => ({ from: "a", to, relation: "intervention" }));
    const it = graphOf({
      step: [step("a", 1)],
      intervention: [command("i2", 5), command("i1", 4)],
      link,
      refused: [],
      agent: [],
      summary: [{ truncated: true }],
    });
    expect(it.commands.get("a")?.map((one) => one.id)).toEqual(["i1", "i2"]);
    expect(it.links).toEqual([]);
    expect(it.truncated).toBe(true);
  });

  it("finds a step by each of its names", () => {
    const it = graph("a", "b<a");
    for (const name of ["b", "step-b", "msg-b", "2"]) expect(stepNamed(it, name)?.id).toBe("b");
    expect(stepNamed(it, "no-such-step")).toBeUndefined();
    expect(stepNamed(it, undefined)).toBeUndefined();
  });

  it("finds words in intent, agent and tool, all of them", () => {
    const it = graphWith({ b: { tool: "serp_search" } }, "a", "b<a");
    expect(found(it, "SERP do").map((one) => one.id)).toEqual(["b"]);
    expect(found(it, "serp nothing")).toEqual([]);
    expect(found(it, "  ")).toEqual([]);
  });
});

describe("the targets of keys g and l", () => {
  it("prefers an open gate to what is merely held", () => {
    const it = graphWith({ a: { state: "held" }, b: { state: "held", gate: "open" } }, "a", "b<a");
    expect(firstGate(it)?.id).toBe("b");
    expect(firstGate(graph("a"))).toBeUndefined();
  });

  it("treats four equal steps in a row by one agent as a loop, with or without others in between", () => {
    const same = { intent: "search", tool: "serp", status: "failure" };
    const other = { agent_id: "other-1" };
    const four = { b: same, c: same, x: other, d: same, e: same };
    expect(firstLoop(graphWith(four, "a", "b<a", "c<b", "x<a", "d<c", "e<d"))?.id).toBe("b");
    expect(firstLoop(graphWith({ b: same, c: same, d: same }, "a", "b<a", "c<b", "d<c"))).toBeUndefined();
    expect(firstLoop(graphWith({ b: { entropy_score: 0.2 } }, "a", "b<a"))?.id).toBe("b");
    expect(firstLoop(graphWith({ b: { entropy_score: 0.9 } }, "a", "b<a"))).toBeUndefined();
  });
});

describe("navigation", () => {
  const it_ = graph("a", "b<a", "c<a", "d<b,c", "r");
  const at = (from: string | undefined, way: Parameters<typeof walk>[2]) => walk(it_, from, way)?.id;

  it.each([
    ["d", "up", "b"],
    ["a", "down", "b"],
    ["b", "right", "c"],
    ["c", "left", "b"],
    ["c", "right", undefined],
    ["b", "left", undefined],
    ["a", "right", "r"],
    ["b", "newer", "c"],
    ["b", "older", "a"],
    ["a", "older", undefined],
    ["r", "newer", undefined],
    [undefined, "older", "r"],
    [undefined, "down", "a"],
  ] as const)("from %s %s leads to %s", (from, way, to) => {
    expect(at(from, way)).toBe(to);
  });
});

describe("colours", () => {
  it("are never the only sign: every one has a word", () => {
    const it = graphWith(
      { a: { state: "refused" }, b: { gate: "open", state: "held" }, c: { status: "failure" } },
      "a",
      "b<a",
      "c<b",
    );
    for (const look of ["state", "cost", "agent", "infection"] as const) {
      const how = painting(it, look, new Map([[2, "source"]]));
      for (const one of it.steps) expect(paintOf(how, one).word).not.toBe("");
    }
  });

  it("give no two agents the same letter", () => {
    const names = Array.from({ length: 60 }, (_, n) => `s${n}`);
    const it = graphWith(Object.fromEntries(names.map((name) => [name, { agent_id: name }])), ...names);
    const how = painting(it, "agent", new Map());
    expect(new Set(it.steps.map((one) => paintOf(how, one).mark)).size).toBe(60);
  });

  it("are hottest for the most expensive branch", () => {
    const it = graphWith({ a: { cost: 0 }, b: { cost: 9 }, c: { cost: 0.01 } }, "a", "b<a", "c<a");
    const how = painting(it, "cost", new Map());
    const level = (id: string) => paintOf(how, it.byId.get(id) as never).level;
    expect(level("b")).toBe(4);
    expect(level("c")).toBe(0);
  });

  it("distinguish source, affected and downstream", () => {
    const it = graph("a", "b<a", "c<b", "d<c");
    const how = painting(
      it,
      "infection",
      new Map([
        [1, "source"],
        [2, "strong"],
        [3, "weak"],
      ] as const),
    );
    expect(it.steps.map((one) => paintOf(how, one).word)).toEqual([
      "source",
      "affected",
      "downstream",
      "clean",
    ]);
  });
});
