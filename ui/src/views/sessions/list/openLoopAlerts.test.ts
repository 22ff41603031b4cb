import { describe, expect, it } from "vitest";
import type { AlertItem } from "~/protocol/openapi";
import { plain } from "~/widgets/loopText";
import { detectorOf, durationOf, type Step, sentence, withEvents } from "./openLoopAlerts";

function alarm(overrides: Partial<AlertItem> = {}): AlertItem {
  return {
    event_type: "loop_detected",
    session_id: "s",
    agent_id: "researcher-beta-3",
    detector: "fingerprint",
    entropy_score: 0.2,
    occurrence_count: 5,
    window_size: 5,
    reason: null,
    repeated_pattern: { tool_call: "serp_search", intent: "Find it", action_status: "failure" },
    sequence_number: 100,
    since: "2026-01-01T00:00:40Z",
    ...overrides,
  };
}

describe("alert texts", () => {
  it.each([
    [alarm(), 40_000, "loop: same failing `serp_search` 5 times in 40 s"],
    [alarm(), null, "loop: same failing `serp_search` 5 times"],
    [alarm(), 300, "loop: same failing `serp_search` 5 times in under 1 s"],
    [
      alarm({ window_size: 12, occurrence_count: 4 }),
      60_000,
      "loop: the same 3 calls in turn, 4 rounds in 60 s",
    ],
    [
      alarm({
        detector: "monologue",
        repeated_pattern: { tool_call: null, intent: "Hm", action_status: null },
      }),
      null,
      "loop: 5 equal thoughts, no call",
    ],
    [
      alarm({ repeated_pattern: { tool_call: null, intent: "Wait for it", action_status: "success" } }),
      null,
      "loop: same step “Wait for it” 5 times",
    ],
    [
      alarm({ detector: "similarity" }),
      9_000,
      "loop: same failing calls, reworded, of `serp_search` 5 times in 9 s",
    ],
    // The ratio is over a window of five steps, however often something repeated.
    [
      alarm({ event_type: "entropy_alert", detector: "ratio", occurrence_count: 2, window_size: 5 }),
      null,
      "loop: same failing `serp_search` 2 times",
    ],
  ])("%#", (one, ms, text) => {
    expect(plain(sentence(one, ms))).toBe(text);
  });
  it("names the detector", () => {
    expect(detectorOf(alarm()).name).toBe("fingerprint");
    expect(detectorOf(alarm({ event_type: "entropy_alert", detector: "ratio" })).name).toBe("ratio");
  });
});

describe("duration", () => {
  const steps: Step[] = Array.from({ length: 8 }, (_, n) => ({
    sequence_number: 92 + n * 2,
    step_id: `step-${n}`,
    at: new Date(Date.UTC(2026, 0, 1, 0, 0, n * 10)).toISOString(),
    tool: n === 3 ? "other" : "serp_search",
  }));
  it("counts back from the step that raised it, over steps with its tool", () => {
    // up to number 100 there are steps 0 to 4, of which one has another tool
    expect(durationOf(alarm({ occurrence_count: 4 }), steps)).toBe(40_000);
    expect(durationOf(alarm({ occurrence_count: 2 }), steps)).toBe(20_000);
  });
  it("is null if steps are missing", () => {
    expect(durationOf(alarm({ occurrence_count: 5 }), steps)).toBeNull();
  });
});

describe("open alerts updated by events", () => {
  const raised = alarm({ sequence_number: 10 });
  it("adds the new one on top and distinguishes the detectors", () => {
    const ratio = alarm({ event_type: "entropy_alert", sequence_number: 12 });
    expect(withEvents([raised], [ratio]).map((one) => one.event_type)).toEqual([
      "entropy_alert",
      "loop_detected",
    ]);
  });
  it("drops one that ended, of that agent only", () => {
    const other = alarm({ agent_id: "another", sequence_number: 9 });
    const ended = { ...raised, event_type: "loop_ended", sequence_number: 14 } as const;
    expect(withEvents([raised, other], [ended])).toEqual([other]);
  });
  it("ignores an end that is older than the alert", () => {
    const ended = { ...raised, event_type: "loop_ended", sequence_number: 5 } as const;
    expect(withEvents([raised], [ended])).toEqual([raised]);
  });
});
