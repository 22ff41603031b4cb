import { expect, test } from "vitest";
import type { AlertItem } from "~/protocol/openapi";
import { pausable, sentence } from "./alertText";

const alarm = { id: "researcher-beta-3", kind: "loop", text: "is looping", session_id: "s1" };
const alert: AlertItem = {
  agent_id: "researcher-beta-3",
  detector: "ratio",
  entropy_score: 0.1,
  event_type: "entropy_alert",
  occurrence_count: 5,
  reason: null,
  repeated_pattern: { action_status: "failed", intent: null, tool_call: "serp_search" },
  sequence_number: 9,
  session_id: "s1",
  since: "2026-02-16T14:32:00Z",
  window_size: 12,
};

test("a loop says what is repeated, how often and in what window", () => {
  expect(sentence(alarm, [alert])).toBe("loop: same failing `serp_search` 5 times in its last 12 steps");
});

test("as often as the window is long is in a row", () => {
  expect(sentence(alarm, [{ ...alert, window_size: 5 }])).toBe(
    "loop: same failing `serp_search` 5 times in a row",
  );
});

test("of two detectors the one with the higher count is shown; without a pattern its own sentence", () => {
  const less = {
    ...alert,
    occurrence_count: 3,
    repeated_pattern: { action_status: null, intent: null, tool_call: "other" },
  };
  expect(sentence(alarm, [less, alert])).toContain("`serp_search` 5 times");
  const bare = {
    ...alert,
    reason: "two agents hand it back and forth",
    repeated_pattern: { action_status: null, intent: null, tool_call: null },
  };
  expect(sentence(alarm, [bare])).toBe("loop: two agents hand it back and forth");
});

test("a violation says which field broke the schema", () => {
  const notice = {
    kind: "violation" as const,
    agent_id: alarm.id,
    text: "researcher-beta-3 v3 sent a message that breaks the schema: cognition.intent: is missing",
  };
  expect(sentence({ ...alarm, kind: "schema_violation" }, [], [notice])).toBe(
    "breaks the schema: cognition.intent: is missing",
  );
  expect(sentence({ ...alarm, kind: "schema_violation", text: null }, [], [])).toBe(
    "its last message broke the schema",
  );
});

test("another agent's alert in the same session is not used", () => {
  expect(sentence(alarm, [{ ...alert, agent_id: "writer-1" }])).toBe("is looping");
});

test("without a tool the intent is named", () => {
  const sentenceText = sentence({ ...alarm, kind: "warning" }, [
    { ...alert, repeated_pattern: { action_status: null, intent: "look again", tool_call: null } },
  ]);
  expect(sentenceText).toBe("repeats itself: same step “look again” 5 times in its last 12 steps");
});

test("an alert that is not a loop keeps the map's text", () => {
  expect(sentence({ ...alarm, kind: "silent", text: "its heartbeat is overdue" }, [alert])).toBe(
    "its heartbeat is overdue",
  );
  expect(sentence({ ...alarm, kind: "kill", text: null }, [])).toBe("kill");
});

test("only ongoing incidents can be paused", () => {
  expect(["loop", "warning", "schema_violation"].every(pausable)).toBe(true);
  expect(["silent", "evicted", "held", "paused", "kill"].some(pausable)).toBe(false);
});
