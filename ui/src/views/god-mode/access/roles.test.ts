import { describe, expect, it } from "vitest";
import type { KeyItem, UserItem } from "~/protocol/openapi";
import { difference, expiryOf, keyStanding, may, ordered } from "./roles";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const key = (more: Partial<KeyItem>) =>
  ({
    created_at: "2026-01-01T00:00:00Z",
    revoked_at: null,
    expires_at: null,
    user_id: null,
    ...more,
  }) as KeyItem;

describe("roles", () => {
  it("match what the gateway grants", () => {
    expect(may("viewer", "read")).toBe(true);
    expect(may("viewer", "operate")).toBe(false);
    expect(may("no-role", "read")).toBe(false);
  });
  it("describe what a change adds and removes", () => {
    expect(difference("viewer", "auditor")).toMatch(
      /^adds: verify the audit trail; export the audit trail\.$/,
    );
    expect(difference("admin", "operator")).toMatch(/removes: export the audit trail; kill switch/);
    expect(difference("auditor", "approver")).toMatch(/adds: .*And removes: /);
    expect(difference("viewer", "viewer")).toBe("no change of permissions.");
  });
});

it("a key is inactive when it was revoked, has expired, or its user is disabled", () => {
  const gone = [{ user_id: "usr_1", disabled_at: "2026-01-02T00:00:00Z" }] as UserItem[];
  expect(keyStanding(key({}), [], NOW).ended).toBe(false);
  expect(keyStanding(key({ revoked_at: "2026-01-02T00:00:00Z" }), [], NOW).word).toMatch(/revoked/);
  expect(keyStanding(key({ expires_at: "2026-11-16T11:00:00Z" }), [], NOW).word).toMatch(/expired/);
  expect(keyStanding(key({ user_id: "usr_1" }), gone, NOW).word).toMatch(/disabled/);
});

it("active keys come first, then the newest", () => {
  const items = [
    key({ label: "old" }),
    key({ label: "gone", revoked_at: "x", created_at: "2026-09-01T00:00:00Z" }),
    key({ label: "new", created_at: "2026-05-01T00:00:00Z" }),
  ];
  expect(ordered(items, (one) => one.revoked_at !== null).map(({ label }) => label)).toEqual([
    "new",
    "old",
    "gone",
  ]);
});

it("an invalid date is no date", () => {
  expect(expiryOf("")).toBeNull();
  expect(expiryOf("soon")).toBeNull();
  expect(expiryOf("2026-12-01T10:30")).toMatch(/^2026-1\d-\d\dT/);
});
