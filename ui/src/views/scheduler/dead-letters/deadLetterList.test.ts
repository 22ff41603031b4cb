import { describe, expect, it } from "vitest";
import type { DeadLetterItem } from "~/protocol/openapi";
import { meant, pick, readShown, shortReason, toggled } from "./deadLetterList";

const letter = (letter_id: string, reason = "refused 1 time, last reason: denied"): DeadLetterItem => ({
  letter_id,
  kind: "job",
  source_id: "job_1",
  source_name: "sweep",
  subject_id: "run_1",
  reason,
  preview: '{"room": 7}',
  state: "dead",
  created_at: "2026-11-16T12:00:00Z",
  ended_at: null,
  ended_by: null,
});
const THREE = [letter("a"), letter("b", "HTTP 500"), letter("c")];

describe("dead letters", () => {
  it("are found by name, reason and payload", () => {
    expect(pick(THREE, "500").map((one) => one.letter_id)).toEqual(["b"]);
    expect(pick(THREE, "ROOM")).toHaveLength(3);
  });

  it("a bulk action applies to the selected ones that are shown, or to all that are shown", () => {
    expect(meant(THREE, new Set())).toEqual(["a", "b", "c"]);
    expect(meant(THREE, new Set(["c", "gone"]))).toEqual(["c"]);
    expect(meant(THREE, new Set(["gone"]))).toEqual(["a", "b", "c"]);
  });

  it("are selected and deselected one by one", () => {
    const one = toggled(new Set(), "a");
    expect([...one]).toEqual(["a"]);
    expect([...toggled(one, "a")]).toEqual([]);
  });

  it("show the last error in a row", () => {
    expect(shortReason("refused 3 times, last reason: policy_denied")).toBe("policy_denied");
    expect(shortReason("HTTP 500")).toBe("HTTP 500");
  });

  it("invalid URL values become the default", () => {
    expect(readShown({ state: "alive", kind: "pigeon" })).toEqual({ q: "", state: "dead", kind: null });
  });
});
