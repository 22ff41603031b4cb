import { describe, expect, it } from "vitest";
import type { HoldItem, InterventionItem } from "~/protocol/openapi";
import {
  agentOf,
  canUndo,
  injectWarnings,
  inLine,
  mergedInterventions,
  pauseInForce,
  pauseWarning,
  stagesOf,
  whyHeld,
} from "./interventionState";

const AT = "2026-01-01T00:00:00Z";
const NOW = Date.parse(AT);
function command(overrides: Partial<InterventionItem> = {}): InterventionItem {
  return {
    intervention_id: "int_1",
    command: "pause",
    agent_id: "a",
    session_id: "s",
    operator_id: "user:me",
    issued_at: AT,
    acknowledged_at: null,
    proven: null,
    confirmed_at: null,
    reversed_at: null,
    confirmation: "requested",
    before_hash: null,
    after_hash: null,
    message_id: null,
    note: null,
    sequence_number: 1,
    ...overrides,
  };
}

describe("a pause", () => {
  it("passes through three states with their times", () => {
    const pause = command({ acknowledged_at: AT });
    expect(stagesOf(pause).map(({ word, at }) => [word, at !== null])).toEqual([
      ["requested", true],
      ["acknowledged", true],
      ["confirmed", false],
    ]);
  });
  it("shows whether its acknowledgement is proven", () => {
    const pause = command({ acknowledged_at: AT, proven: false });
    expect(stagesOf(pause)[1]).toMatchObject({ word: "acknowledged (unproven)", at: AT });
    expect(stagesOf({ ...pause, proven: true })[1].word).toBe("acknowledged");
  });
  it("takes its states from the live graph before the list is refetched", () => {
    const live = { id: "int_1", acknowledged_at: AT, proven: null, confirmed_at: AT, reversed_at: null };
    const { items, missing } = mergedInterventions([command()], [live, { ...live, id: "int_2" }]);
    expect(items[0]?.confirmed_at).toBe(AT);
    expect(missing).toBe(true);
    expect(mergedInterventions([command()], [live]).missing).toBe(false);
  });
  it("is in force until it is reversed or resumed, for its agent only", () => {
    expect(pauseInForce([command()], "a")?.intervention_id).toBe("int_1");
    expect(pauseInForce([command()], "b")).toBeNull();
    expect(pauseInForce([command({ reversed_at: AT })], "a")).toBeNull();
    expect(pauseInForce([command({ command: "unpause", sequence_number: 2 }), command()], "a")).toBeNull();
  });
  it("shows when it takes too long, and that messages are held regardless", () => {
    expect(pauseWarning(command(), NOW + 1_000)).toBeNull();
    expect(pauseWarning(command(), NOW + 60_000)).toContain("Not acknowledged for 60 s");
    expect(pauseWarning(command({ acknowledged_at: AT }), NOW + 60_000)).toContain("still sending");
    expect(pauseWarning(command({ acknowledged_at: AT, confirmed_at: AT }), NOW + 60_000)).toBeNull();
  });
});

describe("undoing a command", () => {
  it.each([
    [command(), true],
    [command({ reversed_at: AT }), false],
    [command({ command: "inject" }), true],
    [command({ command: "inject", acknowledged_at: AT }), false],
    [command({ command: "rewrite", message_id: "held" }), true],
    [command({ command: "rewrite", message_id: "gone" }), false],
    [command({ command: "approve", message_id: "held" }), false],
    [command({ command: "cancel" }), false],
  ])("%#", (one, can) => expect(canUndo(one, new Set(["held"]))).toBe(can));
});

describe("whether an agent listens", () => {
  const alive = { liveness: "healthy", last_heartbeat_at: AT } as const;
  it("has no warnings for one with a heartbeat", () => {
    expect(injectWarnings(alive, [], "a", NOW)).toEqual([]);
  });
  it("warns about one without heartbeat, unless it has acknowledged a command", () => {
    const silent = { liveness: "unknown", last_heartbeat_at: null } as const;
    expect(injectWarnings(silent, [], "a", NOW)).toHaveLength(1);
    expect(injectWarnings(silent, [command({ acknowledged_at: AT, confirmed_at: AT })], "a", NOW)).toEqual(
      [],
    );
  });
  it("warns about dead agents, and about one that does not acknowledge its pause", () => {
    expect(injectWarnings({ liveness: "zombie", last_heartbeat_at: AT }, [], "a", NOW + 40_000)[0]).toContain(
      "for 40 s",
    );
    expect(injectWarnings(alive, [command()], "a", NOW + 40_000)).toHaveLength(1);
  });
});

describe("what is held", () => {
  const hold = (overrides: Partial<HoldItem>) =>
    ({ cause: "pause", gate: "none", agent_id: "a", sequence_number: 1, ...overrides }) as HoldItem;
  it("lists those of the selected agent first, each in order of arrival", () => {
    const line = inLine(
      [
        hold({ sequence_number: 1, agent_id: "b" }),
        hold({ sequence_number: 9 }),
        hold({ sequence_number: 3 }),
      ],
      "a",
    );
    expect(line.map((one) => one.sequence_number)).toEqual([3, 9, 1]);
  });
  it("shows the reason", () => {
    expect(whyHeld(hold({ gate: "open", cause: "pause" }))).toBe("waiting for a decision");
    expect(whyHeld(hold({ gate: "approved" }))).toContain("approved");
    expect(whyHeld(hold({ cause: "ancestor" }))).toContain("depends");
  });
  it("is the agent chosen by hand, else selected, else the busiest", () => {
    const members = [
      { agent_id: "x", messages: 1 },
      { agent_id: "y", messages: 5 },
    ] as never;
    expect([
      agentOf(members, "c", "s"),
      agentOf(members, undefined, "s"),
      agentOf(members, undefined, undefined),
    ]).toEqual(["c", "s", "y"]);
    expect(agentOf([], undefined, undefined)).toBeNull();
  });
});
