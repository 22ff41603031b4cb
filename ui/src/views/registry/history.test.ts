import { describe, expect, it } from "vitest";
import type { AlertNotice, AuditEvent } from "~/protocol/openapi";
import { kindOf, lineOf, merged, minutes, noticed, reaches, readKinds, toggledKind } from "./history";

const event = (number: number, at: string, event_type: string): AuditEvent =>
  ({
    audit_event_id: `evt_${number}`,
    attributes: { "av.conversation.id": "ses" },
    body: { event_type, summary: `${event_type} happened`, message_id: "msg_1" },
    hash_chain: { sequence_number: number },
    observed_timestamp: at,
    severity_number: 9,
  }) as unknown as AuditEvent;

describe("an agent's history", () => {
  it.each([
    ["heartbeat", 5, "heartbeat"],
    ["message_delivered", 9, "message"],
    ["message_undeliverable", 13, "trouble"],
    ["message_held", 9, "command"],
    ["hitl_intervention", 9, "command"],
    ["schema_violation", 17, "trouble"],
    ["agent_evicted", 13, "trouble"],
    ["agent_registered", 9, "life"],
  ] as const)("%s (%i) is of the kind %s", (type, severity, kind) => {
    expect(kindOf(type, severity)).toBe(kind);
  });

  it("is shown line by line", () => {
    expect(lineOf(event(7, "2026-11-16T10:00:30Z", "heartbeat"))).toMatchObject({
      number: 7,
      kind: "heartbeat",
      text: "heartbeat happened",
      message_id: "msg_1",
      session_id: "ses",
    });
  });

  it("becomes minutes: heartbeats, other events, silence, and not loaded", () => {
    const lines = [
      lineOf(event(3, "2026-11-16T10:02:10Z", "message_delivered")),
      lineOf(event(2, "2026-11-16T10:00:50Z", "heartbeat")),
      lineOf(event(1, "2026-11-16T09:00:00Z", "heartbeat")),
    ];
    const cells = minutes(lines, Date.parse("2026-11-16T10:02:59Z"), 3);
    expect(cells.map(({ beats, others }) => [beats, others])).toEqual([
      [1, 0],
      [0, 0],
      [0, 1],
    ]);
    const born = "2026-11-16T08:30:20Z";
    expect(reaches(lines, true, born)).toBe(Date.parse("2026-11-16T08:30:00Z"));
    expect(reaches(lines, false, born)).toBe(Date.parse("2026-11-16T09:00:00Z"));
    expect(reaches([], false, born)).toBe(Number.POSITIVE_INFINITY);
  });

  it("is filtered by kinds that the URL names", () => {
    expect(readKinds("trouble,nonsense,life")).toEqual(["life", "trouble"]);
    expect(toggledKind(["life"], "trouble")).toBe("life,trouble");
    expect(toggledKind(["life"], "life")).toBe("");
  });

  it("includes alerts about this agent, each number once", () => {
    const notice = (agent_id: string, sequence_number: number) =>
      ({
        agent_id,
        sequence_number,
        kind: "eviction",
        text: "evicted",
        at: "2026-11-16T10:00:00Z",
      }) as AlertNotice;
    const notices = noticed([notice("me", 9), notice("me", 7), notice("other", 8)], "me");
    const all = merged([lineOf(event(7, "2026-11-16T10:00:30Z", "heartbeat"))], notices);
    expect(all.map((line) => [line.number, line.type])).toEqual([
      [9, "eviction"],
      [7, "heartbeat"],
    ]);
  });
});
