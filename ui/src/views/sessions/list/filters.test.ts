import { describe, expect, it } from "vitest";
import { isFiltered, pick, pressedSort, readFilters, says, toggled } from "./filters";
import { rowOf, type SessionRow } from "./session";

let number = 0;
function row(overrides: Partial<SessionRow>): SessionRow {
  number += 1;
  return rowOf({
    session_id: `s-${number}`,
    first_sequence_number: number,
    last_sequence_number: number,
    messages: 1,
    agents_count: 1,
    cost: 0,
    held: 0,
    entropy_score: 1,
    severity: "normal",
    stuck: false,
    status: "running",
    ...overrides,
  });
}
const ids = (rows: readonly SessionRow[]) => rows.map((one) => one.session_id);
const NONE: ReadonlySet<string> = new Set();

describe("filters of the URL", () => {
  it("parses known values and drops the rest", () => {
    const read = readFilters({
      q: " nvda ",
      status: "stuck,nonsense,looping",
      severity: "no",
      cap: "hard",
      sort: "cost",
    });
    expect(read).toMatchObject({ q: "nvda", statuses: ["looping", "stuck"], severity: null, cap: "hard" });
    expect(read).toMatchObject({ sort: "cost", down: true, stuck: false });
    expect(isFiltered(read)).toBe(true);
    expect(isFiltered(readFilters({ sort: "cost:up" }))).toBe(false);
    expect(readFilters({ sort: "cost:up" }).down).toBe(false);
    expect(readFilters({ sort: "constructor" }).sort).toBe("age");
  });
  it("reverses a column when it is pressed again", () => {
    expect(pressedSort({ sort: "age", down: false }, "cost")).toBe("cost:down");
    expect(pressedSort({ sort: "cost", down: true }, "cost")).toBe("cost:up");
  });
  it("adds and removes a status", () => {
    expect(toggled(["running"], "looping")).toBe("looping,running");
    expect(toggled(["looping", "running"], "running")).toBe("looping");
  });
});

describe("matching sessions", () => {
  it("searches goal, agents and the beginning of the id, ignoring case", () => {
    const one = row({ session_id: "01AB-99", goal: "Write the NVDA note", agent_names: ["writer-beta-1"] });
    expect(["nvda", "BETA", "01ab"].map((q) => says(one, q))).toEqual([true, true, true]);
    expect(says(one, "99")).toBe(false);
  });
  it("shows what the gateway found although the row names only five agents", () => {
    const one = row({ agent_names: ["a"] });
    const filters = readFilters({ q: "sixth" });
    expect(pick([one], [], filters, NONE).rows).toEqual([]);
    expect(pick([one], [], filters, new Set([one.session_id])).rows).toEqual([one]);
  });
  it("prefers the live row to the one loaded before", () => {
    const now = row({ session_id: "same", messages: 9 });
    const before = row({ session_id: "same", messages: 3 });
    expect(pick([now], [before], readFilters({}), NONE).rows).toEqual([now]);
  });
  it("counts statuses ignoring the status filter, but not the others", () => {
    const rows = [
      row({ status: "looping", stuck: true }),
      row({ status: "running" }),
      row({ status: "stuck", stuck: true }),
    ];
    const { rows: shown, counts } = pick(rows, [], readFilters({ status: "looping", stuck: "yes" }), NONE);
    expect(shown.map((one) => one.status)).toEqual(["looping"]);
    expect(counts).toMatchObject({ looping: 1, stuck: 1, running: 0 });
  });
  it("distinguishes soft and hard cap", () => {
    const cap = (spent: number) =>
      ({ budget_id: "b", scope: "session", target: "*", soft: 3, hard: 5, spent, share: spent / 5 }) as const;
    const rows = [row({ cap: cap(1) }), row({ cap: cap(3) }), row({ cap: cap(5) }), row({ cap: null })];
    expect(pick(rows, [], readFilters({ cap: "soft" }), NONE).rows).toHaveLength(2);
    expect(pick(rows, [], readFilters({ cap: "hard" }), NONE).rows).toHaveLength(1);
  });
});

describe("order", () => {
  it("is newest started first, and stable while sessions are active", () => {
    const [old, young] = [row({}), row({})];
    const busy = { ...old, last_sequence_number: 10_000 };
    expect(ids(pick([old, young], [], readFilters({}), NONE).rows)).toEqual([
      young.session_id,
      old.session_id,
    ]);
    expect(ids(pick([busy, young], [], readFilters({}), NONE).rows)).toEqual([
      young.session_id,
      old.session_id,
    ]);
    expect(ids(pick([busy, young], [], readFilters({ sort: "activity" }), NONE).rows)[0]).toBe(
      old.session_id,
    );
  });
  it("puts unknown values last both ways", () => {
    const rows = [row({ confidence: null }), row({ confidence: 0.2 }), row({ confidence: 0.9 })];
    for (const sort of ["confidence:up", "confidence:down"])
      expect(pick(rows, [], readFilters({ sort }), NONE).rows.at(-1)?.confidence).toBeNull();
  });
  it("puts sessions that need attention first when sorted by status", () => {
    const rows = [row({ status: "ended" }), row({ status: "looping" }), row({ status: "waiting" })];
    expect(pick(rows, [], readFilters({ sort: "status" }), NONE).rows.map((one) => one.status)).toEqual([
      "looping",
      "waiting",
      "ended",
    ]);
  });
});
