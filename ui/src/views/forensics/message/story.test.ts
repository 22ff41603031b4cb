import { describe, expect, it } from "vitest";
import { type Block, hrefOf, storyOf } from "./story";

const envelope = (payload: object) => ({ payload });
const titles = (blocks: readonly Block[]) => blocks.map((one) => ("title" in one ? one.title : one.text));

describe("a message as a story (S667)", () => {
  it("shows a step from its intent to its cost", () => {
    const story = storyOf("decision_log", {
      meta: { cluster_id: "eu" },
      identity: { agent_id: "ada", agent_type: "planner", capability_version: "1.0.0", model: "m" },
      cognition: {
        intent: "Find the revenue",
        reasoning_chain: ["first", "second"],
        confidence_score: 0.82,
        alternatives: [{ option: "guess", why_not: "no source" }],
        citations: ["https://a.example/x", { uri: "file:///etc/passwd", label: "p" }],
      },
      action: { status: "success", tool_call: "web", tool_input: '{"q":1}', tool_output_summary: "found" },
      state_delta: { added_to_memory: ["a fact"], cost: 0.02, tokens_consumed: 1200 },
    });
    expect(titles(story?.blocks ?? [])).toEqual([
      "Find the revenue",
      "Rejected alternatives",
      "Reasoning",
      "Action",
      "Input",
      "Output",
      "Added to memory",
      "Citations",
      "Cost",
      "Confidence",
      "Agent",
    ]);
    expect(story?.blocks[4]).toEqual({ kind: "json", title: "Input", value: { q: 1 } });
  });
  it.each([
    [
      "decision_request",
      { title: "Publish?", options: [{ option_id: "a", label: "Yes", risk_level: "low" }] },
      "Yes (low risk)",
    ],
    ["decision_response", { decision_id: "d", selected_option_id: "a", respondent_note: "fine" }, "fine"],
    ["status_alert", { title: "Disk", severity: "error", detail: { content: "full" } }, "full"],
    ["artifact_share", { title: "Report", artifact_type: "file", content: "x=1" }, "x=1"],
    [
      "action_confirmation",
      { action_type: "deploy", status: "rollback", before_state: { v: 1 } },
      "rollback",
    ],
    ["heartbeat", { agent_status: "busy", current_task: { description: "reads", progress_pct: 40 } }, "40 %"],
    ["text", { content: "hello" }, "hello"],
    ["system_event", { event_type: "policy_changed", reason: "by hand" }, "by hand"],
  ])("shows a %s", (type, payload, holds) => {
    const story = storyOf(type, envelope(payload));
    expect(story?.does).toBeTruthy();
    expect(JSON.stringify(story?.blocks)).toContain(holds);
  });
  it("returns null for an unknown type or another shape", () => {
    expect(storyOf("telepathy", envelope({ a: 1 }))).toBeNull();
    expect(storyOf("constructor", envelope({ a: 1 }))).toBeNull();
    expect(storyOf("text", { payload: "no object" })).toBeNull();
    expect(storyOf("text", null)).toBeNull();
    expect(storyOf("decision_log", { cognition: 5, action: [], identity: "x" })?.blocks[0]).toMatchObject({
      kind: "lead",
    });
  });
  it("links only to http and https", () => {
    expect(hrefOf("https://a.example")).toBe("https://a.example");
    expect(hrefOf("javascript:alert(1)")).toBeNull();
    expect(hrefOf("file:///etc/passwd")).toBeNull();
  });
});
