import { expect, it } from "vitest";
import type { AgentItem, InstructedAgent, InstructionsItem } from "~/protocol/openapi";
import { lineOf } from "../trail";
import { faultOf, kindsOf, readDraft, rolloutOf } from "./agentTypes";

it("lists every type with an agent or with instructions", () => {
  const agents = [
    { agent_type: "writer", evicted_at: null },
    { agent_type: "planner", evicted_at: null },
    { agent_type: "planner", evicted_at: "2026-01-01T00:00:00Z" },
    { agent_type: null, evicted_at: null },
  ] as AgentItem[];
  const items = [
    { agent_type: "writer", version: 3, agents: 4, acknowledged: 2 },
    { agent_type: "gone", version: 1, agents: 0, acknowledged: 0 },
  ] as InstructionsItem[];
  expect(kindsOf(items, agents)).toEqual([
    { name: "gone", version: 1, agents: 0, taken: 0 },
    { name: "planner", version: null, agents: 1, taken: 0 },
    { name: "writer", version: 3, agents: 4, taken: 2 },
  ]);
});

it("keeps a draft and reports why it cannot be issued", () => {
  expect(readDraft(null)).toBeNull();
  expect(readDraft("[")).toBeNull();
  const draft = readDraft('{"text": "be kind"}');
  expect(draft).toEqual({ text: "be kind", note: "", was: 0 });
  if (!draft) return;
  expect(faultOf(draft, "be kind")).toMatch(/No changes/);
  expect(faultOf({ ...draft, text: "  " }, "")).toMatch(/empty/);
  expect(faultOf({ ...draft, text: "é".repeat(33 << 10) }, "")).toMatch(/64 KiB/);
  expect(faultOf({ ...draft, note: "x".repeat(1_001) }, "")).toMatch(/1,000/);
  expect(faultOf(draft, "be terse")).toBeNull();
});

it("counts a roll-out over present agents, recently seen first", () => {
  const one = (agent_id: string, more: Partial<InstructedAgent>) =>
    ({ agent_id, pending: true, evicted: false, last_seen_at: null, ...more }) as InstructedAgent;
  const found = rolloutOf([
    one("never", {}),
    one("has", { pending: false }),
    one("gone", { evicted: true }),
    one("lately", { last_seen_at: "2026-11-16T12:00:00Z" }),
  ]);
  expect([found.all, found.taken]).toEqual([3, 1]);
  expect(found.waiting.map(({ agent_id }) => agent_id)).toEqual(["lately", "never"]);
});

it("shows an action with the event's text, with names instead of ids", () => {
  const event = (event_type: string, summary: string, more = {}) =>
    ({
      audit_event_id: "evt_1",
      timestamp: "2026-11-16T12:00:00Z",
      attributes: { "av.sender.entity_id": "usr_a" },
      body: { event_type, summary, ...more },
    }) as never;
  const line = lineOf(event("user_created", "user usr_01-ab created as viewer"), () => "Ada");
  expect([line.text, line.by, line.word]).toEqual(["user Ada created as viewer", "usr_a", "user"]);
  const engagedLine = lineOf(
    event("kill_switch_engaged", "kill-switch: engaged", { reason: "drill" }),
    String,
  );
  expect(engagedLine.text).toBe("kill-switch: engaged (“drill”)");
  expect(lineOf(event("something_new", ""), String).text).toBe("something_new");
});
