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
  it("may what the gateway grants", () => {
    expect(may("viewer", "read")).toBe(true);
    expect(may("viewer", "operate")).toBe(false);
    expect(may("nobody", "read")).toBe(false);
  });
  it("tell what a change gives and takes", () => {
    expect(difference("viewer", "auditor")).toMatch(/^may from now on: verify the record; export it\.$/);
    expect(difference("admin", "operator")).toMatch(/may no longer: export it; kill-switch/);
    expect(difference("auditor", "approver")).toMatch(/may from now on: .*And may no longer: /);
    expect(difference("viewer", "viewer")).toBe("may do just the same.");
  });
});

it("a key opens nothing when it was revoked, is past its time, or its user is disabled", () => {
  const gone = [{ user_id: "usr_1", disabled_at: "2026-01-02T00:00:00Z" }] as UserItem[];
  expect(keyStanding(key({}), [], NOW).ended).toBe(false);
  expect(keyStanding(key({ revoked_at: "2026-01-02T00:00:00Z" }), [], NOW).word).toMatch(/revoked/);
  expect(keyStanding(key({ expires_at: "2026-11-16T11:00:00Z" }), [], NOW).word).toMatch(/expired/);
  expect(keyStanding(key({ user_id: "usr_1" }), gone, NOW).word).toMatch(/disabled/);
});

it("what opens something comes first, then the newest", () => {
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

it("a date without sense is no date", () => {
  expect(expiryOf("")).toBeNull();
  expect(expiryOf("soon")).toBeNull();
  expect(expiryOf("2026-12-01T10:30")).toMatch(/^2026-1\d-\d\dT/);
});
