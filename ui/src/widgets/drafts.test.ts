import { expect, test } from "vitest";
import { belongTo, draftOf, forgetWithDrafts, keepDraft, MAX_DRAFTS } from "./drafts";

test("a draft is kept under its name, an empty one too, until it is cleared", () => {
  keepDraft("gate a", "new text");
  keepDraft("gate b", "");
  expect(draftOf("gate a")).toBe("new text");
  expect(draftOf("gate b")).toBe("");
  keepDraft("gate a", null);
  expect(draftOf("gate a")).toBeNull();
});

test("the number of drafts is limited, and the least recently used is dropped first", () => {
  for (let n = 0; n < MAX_DRAFTS; n += 1) keepDraft(`n ${n}`, String(n));
  keepDraft("n 0", "touched again");
  keepDraft("one more", "x");
  expect(draftOf("n 1")).toBeNull();
  expect(draftOf("n 0")).toBe("touched again");
});

test("drafts are cleared when another user signs in, and kept for the same one", () => {
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
