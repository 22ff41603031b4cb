import { describe, expect, it } from "vitest";
import { resultOf } from "./jobs";

const refused = (reason: string) => ({ letter_id: "x", reason });

describe("result of a bulk operation on dead letters", () => {
  it.each([
    [{ done: ["a"], refused: [], more: false }, 1, "1 of 1 dead letter discarded."],
    [
      { done: ["a", "b"], refused: [refused("not_active"), refused("not_active")], more: false },
      4,
      "2 of 4 dead letters discarded. 2 dead letters refused: not_active.",
    ],
    [
      { done: ["a"], refused: [], more: false },
      3,
      "1 of 3 dead letters discarded. 2 dead letters not processed yet.",
    ],
  ])("%j", (result, asked, text) => expect(resultOf(result, asked, "discard")).toBe(text));
});
