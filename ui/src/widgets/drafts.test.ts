import { expect, test } from "vitest";
import { belongTo, draftOf, forgetWithDrafts, keepDraft, MOST } from "./drafts";

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

test("somebody else who signs in on the page finds nothing of it, the same one everything", () => {
  let forgotten = 0;
  forgetWithDrafts(() => {
    forgotten += 1;
  });
  belongTo("tnt_a usr_1");
  keepDraft("god:kill", "a reason and a token");
  belongTo("tnt_a usr_1");
  expect([draftOf("god:kill"), forgotten]).toEqual(["a reason and a token", 0]);
  belongTo("tnt_b usr_1");
  expect([draftOf("god:kill"), forgotten]).toEqual([null, 1]);
});
