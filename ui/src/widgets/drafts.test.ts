import { expect, test } from "vitest";
import { draftOf, keepDraft, MOST } from "./drafts";

test("a draft is kept under its name, an empty one too, until it is forgotten", () => {
  keepDraft("gate a", "new text");
  keepDraft("gate b", "");
  expect(draftOf("gate a")).toBe("new text");
  expect(draftOf("gate b")).toBe("");
  keepDraft("gate a", null);
  expect(draftOf("gate a")).toBeNull();
});

test("there are never more than so many, and the one touched longest ago goes first", () => {
  for (let n = 0; n < MOST; n += 1) keepDraft(`n ${n}`, String(n));
  keepDraft("n 0", "touched again");
  keepDraft("one more", "x");
  expect(draftOf("n 1")).toBeNull();
  expect(draftOf("n 0")).toBe("touched again");
});
