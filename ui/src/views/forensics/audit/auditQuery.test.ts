import { describe, expect, test } from "vitest";
import { isAsked, queryOf, readAsked, readBytes, readEvent, timeOf, toneOf } from "./auditQuery";

describe("audit log query (S686)", () => {
  test("is parsed from the URL; unknown values are dropped", () => {
    expect(isAsked(readAsked({}))).toBe(false);
    const asked = readAsked({ type: "message_held", sev: "17", who: "writer-1", trace: "ab", within: "60" });
    expect(queryOf(asked, Date.parse("2026-11-16T15:00:00Z"))).toEqual({
      event_type: "message_held",
      severity_min: 17,
      entity_id: "writer-1",
      trace_id: "ab",
      since: "2026-11-16T14:00:00.000Z",
      until: null,
      limit: 200,
    });
    expect(readAsked({ sev: "99", within: "x" })).toMatchObject({ sev: "", within: "" });
    expect(queryOf(readAsked({}), 0).severity_min).toBe(9);
    expect(queryOf(readAsked({ sev: "1" }), 0).severity_min).toBe(1);
    expect(queryOf(readAsked({ type: "heartbeat" }), 0).severity_min).toBeNull();
    const between = readAsked({ since: "2026-11-16T14:00", until: "nonsense" });
    expect(between.within).toBe("between");
    expect(queryOf(between, 0)).toMatchObject({ since: timeOf("2026-11-16T14:00"), until: null });
  });
});

describe("an event (S686)", () => {
  const event = {
    audit_event_id: "evt_1",
    attributes: { "av.sender.entity_id": "agt_1", "av.conversation.id": "ses_1" },
    body: { event_type: "message_held", summary: "held", message_id: "msg_1" },
    hash_chain: { sequence_number: 3, event_hash: "", previous_hash: "" },
    observed_timestamp: "2026-11-16T14:00:00Z",
    severity_number: 13,
    severity_text: "WARN",
  };
  test("has an actor, a summary and links", () => {
    expect(readEvent(event as never)).toMatchObject({
      number: 3,
      who: "agt_1",
      session: "ses_1",
      message: "msg_1",
      whom: null,
    });
    expect([toneOf(9).mark, toneOf(13).mark, toneOf(21).mark]).toEqual(["·", "!", "×"]);
  });
  test("a tampered record is shown as text", () => {
    const bytes = (value: string) => new TextEncoder().encode(value);
    expect(readBytes(bytes(`${JSON.stringify(event)}\n`)).event?.audit_event_id).toBe("evt_1");
    expect(readBytes(bytes("{bent"))).toEqual({ event: null, text: "{bent" });
    expect(readBytes(bytes("null\n"))).toEqual({ event: null, text: "null" });
  });
});
