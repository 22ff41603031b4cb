import { describe, expect, it } from "vitest";
import type { AuditEvent } from "~/protocol/openapi";
import { digestOf, placeOf, redactedIn } from "./chainPosition";

const event = (n: number, attributes: object = {}, previous = `h${n - 1}`): AuditEvent =>
  ({
    audit_event_id: `evt_${n}`,
    attributes,
    body: { message_id: `msg_${n}`, event_type: "message_delivered" },
    hash_chain: { sequence_number: n, event_hash: `h${n}`, previous_hash: previous },
  }) as unknown as AuditEvent;

describe("the place in the chain (S669)", () => {
  it("is valid when each names the hash of the previous one", () => {
    const place = placeOf([event(1), event(2, { "av.message.digest": "d" }), event(3)], 2);
    expect(place.follows).toBe(true);
    expect([place.before?.number, place.here?.number, place.after?.number]).toEqual([1, 2, 3]);
    expect(place.here?.message_id).toBe("msg_2");
    expect(place.before?.message_id).toBeNull();
  });
  it("is broken when one does not", () => {
    expect(placeOf([event(1), event(2), event(3, {}, "other")], 2).follows).toBe(false);
    expect(placeOf([event(1)], 1).follows).toBeNull();
    expect(placeOf([], 7).here).toBeNull();
  });
  it("reports the recorded digest and what was redacted", () => {
    const one = event(1, { "av.message.digest": "sha256:a", "av.redaction.replaced": 2 });
    expect([digestOf(one), redactedIn(one)]).toEqual(["sha256:a", 2]);
    expect([digestOf(undefined), redactedIn(event(2))]).toEqual([null, 0]);
  });
});
