import { describe, expect, test } from "vitest";
import type { CertificateItem } from "~/protocol/openapi";
import { endsIn, foremost, nameOf, signOf } from "./certificates";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const DAY = 86_400_000;
const at = (ms: number) => new Date(NOW + ms).toISOString();

function item(over: Partial<CertificateItem>): CertificateItem {
  return {
    use: "client",
    fingerprint: "a".repeat(64),
    subject: "CN=ada",
    issuer: "CN=authority",
    serial: "1",
    names: [],
    not_before: at(-DAY),
    not_after: at(30 * DAY),
    days_left: 30,
    standing: "current",
    in_use: true,
    agents: [],
    bound: [],
    key_ids: [],
    first_seen_at: null,
    last_seen_at: null,
    ...over,
  };
}

describe("certificate texts (S870)", () => {
  test.each([
    [-DAY, 12 * DAY + 5, "expires in 12 days"],
    [-DAY, DAY, "expires in 1 day"],
    [-DAY, 3 * 3_600_000, "expires in 3 hours"],
    [-DAY, 20_000, "expires in 1 minute"],
    [-9 * DAY, -2 * DAY, "expired 2 days ago"],
    [2 * DAY, 9 * DAY, "valid in 2 days"],
  ])("from %d to %d: %s", (since, until, text) => {
    expect(endsIn({ not_before: at(since), not_after: at(until) }, NOW)).toBe(text);
  });

  test.each([
    ["CN=ada,O=Example", "ada"],
    ["O=Example,CN=Smith\\, John", "Smith, John"],
    ["O=Example", "O=Example"],
    ["", "without a name"],
  ])("%s is called %s", (subject, name) => expect(nameOf(subject)).toBe(name));

  test("the worst comes first, and unused ones raise no alert", () => {
    const old = item({ standing: "expired", in_use: false, fingerprint: "old" });
    const soon = item({ standing: "expiring", fingerprint: "soon", not_after: at(3 * DAY) });
    const good = item({ fingerprint: "good", not_after: at(2 * DAY) });
    expect(foremost([old, good, soon])?.fingerprint).toBe("soon");
    expect(foremost([old])).toBeUndefined();
  });

  test("a status has a mark too", () => {
    const marks = (["current", "expiring", "expired", "not_yet"] as const).map((one) => signOf(one).mark);
    expect(new Set(marks).size).toBe(4);
  });
});
