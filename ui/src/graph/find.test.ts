// The filter language: what it matches, and that every fault is reported with its position.
import { describe, expect, it } from "vitest";
import { matches, parseFind } from "./find";
import type { NodeRecord } from "./types";

const node = (more: Partial<NodeRecord>): NodeRecord => ({
  id: "writer-alpha-1",
  name: "writer-alpha-1",
  agent_type: "writer",
  cluster_id: "aws-eu-central-1",
  state: "active",
  rate_per_s: 2,
  cost_per_min: 0.05,
  ...more,
});

const found = (text: string, record: NodeRecord): boolean => {
  const parsed = parseFind(text);
  if (!parsed.ok) throw new Error(parsed.faults.map((one) => one.says).join("; "));
  return matches(parsed.terms, record);
};

describe("find", () => {
  const cases: [string, Partial<NodeRecord>, boolean][] = [
    ["", {}, true],
    ["writer", {}, true],
    ["WRITER", {}, true],
    ["researcher", {}, false],
    ["-researcher", {}, true],
    ["-writer", {}, false],
    ["type:writer", {}, true],
    ["type:planner|writer", {}, true],
    ["state:active", {}, true],
    ["state:loop", { state: "alert_entropy" }, true],
    ["state:blocked", { state: "blocked" }, true],
    ["state:blocked", {}, false],
    ["cluster:aws-*", {}, true],
    ["cluster:gcp-*", {}, false],
    ["cluster:central", {}, true],
    ["name:writer-*-1", {}, true],
    ["rate>1", {}, true],
    ["rate>2", {}, false],
    ["rate>=2 cost<0.1", {}, true],
    ["cost>0.1", {}, false],
    ["is:ghost", { ghost: true }, true],
    ["is:alarmed", { alarms: [{ kind: "loop", severity: "critical", text: "is looping" }] }, true],
    ["is:alarmed", {}, false],
    ["alarm:looping", { alarms: [{ kind: "loop", severity: "critical", text: "is looping" }] }, true],
    ['"quarterly report"', { intent: "write the quarterly report" }, true],
    ["type:writer -state:idle rate>1 alpha", {}, true],
    ["name:w.iter", {}, false],
  ];
  it.each(cases)("%j over %j is %j", (text, more, wanted) => {
    expect(found(text, node(more))).toBe(wanted);
  });

  const faults: [string, number, number, RegExp][] = [
    ["colour:red", 0, 6, /unknown field colour.*state, type/],
    ["writer rate>fast", 12, 4, /fast is not a number/],
    ["rate:5", 0, 6, /rate is a number/],
    ["state:broken", 6, 6, /unknown state broken/],
    ["state:act", 6, 3, /unknown state act/],
    ["type>5", 4, 1, /type is text/],
    ["type:", 0, 5, /needs a value/],
    ['a "open quote', 2, 11, /not closed/],
    ["a -", 2, 1, /excludes/],
    ["is:odd", 3, 3, /unknown is:odd/],
  ];
  it.each(faults)("%j is at fault at %i for %i", (text, at, length, says) => {
    const parsed = parseFind(text);
    if (parsed.ok) throw new Error("accepted");
    expect(parsed.faults).toHaveLength(1);
    expect(parsed.faults[0]).toMatchObject({ at, length });
    expect(parsed.faults[0]?.says).toMatch(says);
  });

  it("reports all faults at once", () => {
    const parsed = parseFind("nope:1 rate>x state:?");
    expect(parsed.ok ? 0 : parsed.faults.length).toBe(3);
  });
});
