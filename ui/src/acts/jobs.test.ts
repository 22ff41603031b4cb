import { describe, expect, it } from "vitest";
import { resultOf } from "./jobs";

const refused = (reason: string) => ({ letter_id: "x", reason });

describe("what came of many letters", () => {
  it.each([
    [{ done: ["a"], refused: [], more: false }, 1, "1 letter of 1 let go."],
    [
      { done: ["a", "b"], refused: [refused("not_active"), refused("not_active")], more: false },
      4,
      "2 letters of 4 let go. 2 letters could not be: not_active.",
    ],
    [{ done: ["a"], refused: [], more: false }, 3, "1 letter of 3 let go. 2 letters not asked yet."],
  ])("%j", (told, asked, text) => expect(resultOf(told, asked, "discard")).toBe(text));
});
