import { expect, test } from "vitest";
import type { WebhookItem } from "~/protocol/openapi";
import { isHidden, NEW, readEndpoint, standingOf, valuesOf } from "./endpoints";

const made = { ...NEW, name: "ops", kind: "email", url: "ops@example.com" };

test("recipients become a mailto, empty filters are left out", () => {
  expect(readEndpoint({ ...made, "filters.agent": ["bob"] }).body).toMatchObject({
    url: "mailto:ops@example.com",
    filters: { agent: ["bob"] },
    schedule_s: [30, 120, 600, 3_600, 21_600],
    rate_per_min: 600,
  });
});

test("each fault is at its field; a hidden address must be pasted again", () => {
  const bad = { ...made, name: "", url: "", rate_per_min: "0", schedule_s: "soon" };
  expect(Object.keys(readEndpoint(bad).faults ?? {})).toEqual(["name", "url", "rate_per_min", "schedule_s"]);
  expect(readEndpoint({ ...made, url: "" }, true).faults?.url).toContain("never shown");
});

test("an endpoint round-trips through the form, except for a hidden address", () => {
  const body = readEndpoint(made).body;
  const item = { ...body, state: "active", failures: 0, waiting: 0, last_ok_at: null } as WebhookItem;
  expect(readEndpoint(valuesOf(item)).body).toEqual(body);
  expect(isHidden("https://hooks.slack.com/…")).toBe(true);
  expect(valuesOf({ ...item, url: "https://hooks.slack.com/…" }).url).toBe("");
});

test("the status is one word", () => {
  const item = { state: "active", failures: 0, waiting: 0, last_ok_at: null } as WebhookItem;
  expect(standingOf(item).word).toBe("· never used");
  expect(standingOf({ ...item, last_ok_at: "2026-11-16T10:00:00Z" }).word).toBe("✓ healthy");
  expect(standingOf({ ...item, waiting: 2 }).word).toBe("‖ 2 pending");
  expect(standingOf({ ...item, failures: 3, waiting: 2 }).word).toBe("× failing (3)");
  expect(standingOf({ ...item, state: "disabled", failures: 3 }).word).toBe("○ disabled");
});
