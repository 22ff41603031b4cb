import { describe, expect, test } from "vitest";
import type { ThoughtItem } from "~/protocol/openapi";
import { beforeSeal, byTask, stateOf, wordsOf } from "./thoughtText";

const session = { records: 4, verified_records: 3, open_tasks: 0, sealed_at: null, ended_at: null };

describe("a session of thoughts (S687)", () => {
  test("has a state", () => {
    expect(stateOf({ ...session, sealed_at: "2026" }).word).toBe("sealed");
    expect(stateOf({ ...session, ended_at: "2026" }).word).toBe("ended, not sealed");
    expect(stateOf(session).word).toBe("verified, open");
    expect(stateOf({ ...session, verified_records: null }).word).toBe("open");
  });
  test("lists what is missing before it can be sealed", () => {
    const reflection = { type: "reflection" };
    expect(beforeSeal(session, reflection)).toBeNull();
    expect(beforeSeal({ ...session, records: 0 }, undefined)).toContain("empty");
    expect(beforeSeal({ ...session, verified_records: null }, reflection)).toContain("verify the chain");
    expect(beforeSeal({ ...session, verified_records: 2 }, reflection)).toContain("verify the chain");
    expect(beforeSeal(session, { type: "decision" })).toContain("reflection");
    expect(beforeSeal({ ...session, open_tasks: 1 }, reflection)).toContain("1 task is");
  });
  test("is grouped by task, in order, with the content of each record", () => {
    const item = (index: number, task_id: string) => ({ index, task_id }) as ThoughtItem;
    expect(
      byTask([item(0, "b"), item(1, "a"), item(2, "b")]).map((task) => [task.task_id, task.items.length]),
    ).toEqual([
      ["b", 2],
      ["a", 1],
    ]);
    expect(wordsOf({ note: 1, why: "cheap", choice: "one node", alternatives: ["all", "wait"] })).toEqual([
      ["chose", "one node"],
      ["over", "all; wait"],
      ["because", "cheap"],
      ["note", "1"],
    ]);
    expect(wordsOf(null)).toEqual([]);
  });
});
