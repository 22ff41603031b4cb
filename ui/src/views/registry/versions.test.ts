import { describe, expect, it } from "vitest";
import type { VersionItem } from "~/protocol/openapi";
import {
  faultOf,
  makeCurrent,
  makePrevious,
  refusedBy,
  refusedSentence,
  registered,
  retire,
  seen,
  versionsOf,
} from "./versions";

const item = (version: string, status: VersionItem["status"]): VersionItem => ({
  agent_type: "writer",
  version,
  status,
  fields: null,
  updated_at: "2026-11-16T10:00:00Z",
  updated_by: "usr_1",
});
const speaks = (capability_version: string, liveness: "healthy" | "evicted" = "healthy") => ({
  capability_version,
  liveness,
});
const VERSIONS = versionsOf(
  [item("1.0.0", "retired"), item("2.0.0", "previous"), item("3.0.0", "current")],
  [speaks("v3.0.0"), speaks("2.0.0"), speaks("2.0.0"), speaks("2.0.0", "evicted"), speaks("9.9.9")],
);
const statuses = (rows: readonly { version: string; status: string }[]) =>
  rows.map((row) => `${row.version} ${row.status}`).sort();

describe("the version registry", () => {
  it("lists N, N-1, unregistered and retired versions, with their instances", () => {
    expect(VERSIONS.map((one) => [one.version, one.status, one.instances])).toEqual([
      ["3.0.0", "current", 1],
      ["2.0.0", "previous", 2],
      ["9.9.9", "unknown", 1],
      ["1.0.0", "retired", 0],
    ]);
    expect(seen(VERSIONS)).toEqual({ "3.0.0": "current", "2.0.0": "previous", "1.0.0": "retired" });
  });

  it("a new current pushes N to N-1 and N-1 out", () => {
    expect(statuses(makeCurrent(VERSIONS, "4.0.0"))).toEqual([
      "1.0.0 retired",
      "2.0.0 retired",
      "3.0.0 previous",
      "4.0.0 current",
    ]);
    expect(statuses(makeCurrent([], "1.0.0"))).toEqual(["1.0.0 current"]);
  });

  it("N-1 promoted to N swaps, and each status is unique", () => {
    expect(statuses(makeCurrent(VERSIONS, "2.0.0"))).toEqual([
      "1.0.0 retired",
      "2.0.0 current",
      "3.0.0 previous",
    ]);
    expect(statuses(makePrevious(VERSIONS, "9.9.9"))).toContain("2.0.0 retired");
  });

  it("retiring leaves the others as they are, also for an unregistered version", () => {
    expect(statuses(retire(VERSIONS, "2.0.0"))).toEqual(["1.0.0 retired", "2.0.0 retired", "3.0.0 current"]);
    expect(statuses(retire(VERSIONS, "9.9.9"))).toContain("9.9.9 retired");
    expect(registered(VERSIONS)).toHaveLength(3);
  });

  it("shows beforehand whose messages will be refused", () => {
    expect(refusedBy(makeCurrent(VERSIONS, "4.0.0"), VERSIONS)).toEqual([{ version: "2.0.0", instances: 2 }]);
    expect(refusedSentence([{ version: "2.0.0", instances: 2 }])).toBe(
      "From the next message on, 2.0.0 is refused; 2 instances use it now.",
    );
    expect(refusedSentence([])).toMatch(/No accepted version/);
  });

  it.each([
    ["", /Enter a version/],
    ["2.1", /three numbers/],
    ["v3.0.0", /already the current/],
    ["v2.1.0-stable", null],
  ])("%j as a new version", (text, words) => {
    const fault = faultOf(text, VERSIONS);
    if (words === null) expect(fault).toBeNull();
    else expect(fault).toMatch(words);
  });
});
