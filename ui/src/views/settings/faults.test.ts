import { expect, test } from "vitest";
import { faultsOf, fieldOf } from "./faults";
import { secondsOf, spanFault, spansOf, spanText } from "./spans";

const problem = (reason: string, message: string, faults: { path: string; problem: string }[] = []) => ({
  reason,
  message,
  faults,
});

test("a fault with a path belongs to its field, the longest name first", () => {
  expect(fieldOf("$.mapping.target.agent", ["target", "intent"])).toBe("target");
  expect(fieldOf("loop_below", ["loop_below"])).toBe("loop_below");
  expect(fieldOf("nowhere", ["name"])).toBeUndefined();
  const found = faultsOf(
    problem("bad_settings", "nothing was changed. …", [
      { path: "window", problem: "must be an integer from 2 to 50" },
      { path: "$", problem: "there is no such setting" },
    ]),
    ["window"],
  );
  expect(found).toEqual({
    at: { window: "Must be an integer from 2 to 50" },
    rest: "$: there is no such setting",
  });
});

test("a reason about one member belongs to its field, with the gateway's sentence", () => {
  expect(faultsOf(problem("bad_url", "the receiver's address is not public"), ["name", "url"])).toEqual({
    at: { url: "The receiver's address is not public" },
    rest: null,
  });
  expect(faultsOf(problem("bad_url", "no"), ["name"])).toEqual({ at: {}, rest: "No" });
  expect(faultsOf(problem("name_taken", "a rule with that name already exists"), ["name"]).at.name).toContain(
    "already exists",
  );
});

test("a sentence that begins with a member belongs to its field", () => {
  expect(faultsOf(problem("bad_rule", "pattern: each repeat needs an end"), ["pattern"])).toEqual({
    at: { pattern: "Each repeat needs an end" },
    rest: null,
  });
  const mapping = problem("bad_mapping", "not valid: …", [
    { path: "mapping.when", problem: "is no expression" },
    { path: "mapping.intent", problem: "is too long" },
  ]);
  expect(faultsOf(mapping, ["when", "intent"]).at).toEqual({
    when: "Is no expression",
    intent: "Is too long",
  });
  expect(faultsOf(problem("bad_rule", "queue_depth has scope capability"), ["name"]).rest).toBe(
    "Queue_depth has scope capability",
  );
});

test("spans are formatted and parsed", () => {
  expect([0, 45, 90, 300, 5_400, 7_200, 86_400].map(spanText)).toEqual([
    "0 s",
    "45 s",
    "90 s",
    "5 min",
    "90 min",
    "2 h",
    "1 d",
  ]);
  expect(["90", "5min", " 1 h ", "7 d", "soon", "", "-3", "1 year"].map(secondsOf)).toEqual([
    90,
    300,
    3_600,
    604_800,
    null,
    null,
    null,
    null,
  ]);
  expect(spanFault("never", 0, 60)).toContain("Enter a time");
  expect(spanFault("2 min", 0, 60)).toBe("Must be from 0 s to 1 min.");
  expect(spanFault("60", 0, 60)).toBeUndefined();
  expect(spansOf("30, 2 min, 1 h")).toEqual([30, 120, 3_600]);
  expect(spansOf("30, later")).toBeNull();
  expect(spansOf("")).toEqual([]);
});
