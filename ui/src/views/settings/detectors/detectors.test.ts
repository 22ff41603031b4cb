import { expect, test } from "vitest";
import type { DetectorAnswer } from "~/protocol/openapi";
import { readDetectors, valuesOf } from "./detectors";

const SAVED: DetectorAnswer = {
  window: 5,
  n_min: 3,
  loop_below: 0.25,
  warning_up_to: 0.5,
  discrepancy_gap: 0.4,
  stuck_s: 600,
  loops: { on: true, rounds: 5, cycle_rounds: 4, likeness_pct: 50, calm_steps: 3, polling_tools: ["sleep"] },
  injections: { on: true, off: [] },
};

test("only changes are sent, and the old values can be restored", () => {
  expect(readDetectors(valuesOf(SAVED), SAVED)).toEqual({ changes: {}, before: {}, faults: null });
  const values = {
    ...valuesOf(SAVED),
    loop_below: "0.3",
    "loops.rounds": "6",
    "injections.on": false,
    stuck_s: "1 h",
  };
  expect(readDetectors(values, SAVED)).toEqual({
    changes: { loop_below: 0.3, loops: { rounds: 6 }, injections: { on: false }, stuck_s: 3_600 },
    before: { loop_below: 0.25, loops: { rounds: 5 }, injections: { on: true }, stuck_s: 600 },
    faults: null,
  });
});

test("all invalid values are reported at their fields", () => {
  const bad = { ...valuesOf(SAVED), window: "1", loop_below: "", "loops.rounds": "3.5", stuck_s: "soon" };
  expect(Object.keys(readDetectors(bad, SAVED).faults ?? {}).sort()).toEqual([
    "loop_below",
    "loops.rounds",
    "stuck_s",
    "window",
  ]);
  expect(readDetectors({ ...valuesOf(SAVED), loop_below: "0.6" }, SAVED).faults).toHaveProperty("loop_below");
  expect(readDetectors({ ...valuesOf(SAVED), n_min: "6" }, SAVED).faults).toHaveProperty("n_min");
});
