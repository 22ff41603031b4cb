import { expect, test } from "vitest";
import { isSilent, linesOf } from "./telemetry";

const NOTHING = {
  spans: 0,
  log_records: 0,
  recorded: 0,
  refused: 0,
  not_agents: 0,
  without_tokens: 0,
  without_cost: 0,
  early: 0,
  sums_left: 0,
  cut: 0,
  unmapped: [],
  grpc: null,
};

test("received counts are always listed, problems only if there are any", () => {
  expect(isSilent(NOTHING)).toBe(true);
  expect(isSilent({ ...NOTHING, log_records: 1 })).toBe(false);
  expect(linesOf(NOTHING).map((one) => one.name)).toEqual(["spans", "log records", "steps recorded"]);
  const names = linesOf({ ...NOTHING, spans: 9, recorded: 6, not_agents: 3, without_cost: 2 }).map(
    (one) => one.name,
  );
  expect(names.slice(3)).toEqual(["not agents'", "without cost"]);
});
