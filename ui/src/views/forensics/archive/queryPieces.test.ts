import { describe, expect, it } from "vitest";
import {
  anyTime,
  between,
  chipsOf,
  filtered,
  leftOut,
  piecesOf,
  toggledFilter,
  without,
  written,
} from "./queryPieces";

describe("the pieces of a question (S663)", () => {
  it.each([
    ["refund invoice", ["word", "word"]],
    ['agent:planner "rate limit" ~"money back"', ["filter", "phrase", "meaning"]],
    ["a OR b -c NOT d", ["word", "join", "word", "without", "join", "word"]],
    ["colour:red since:1h", ["unknown", "filter"]],
    ['"never closed', ["phrase"]],
    ['agent:"two words" -status:failure', ["filter", "filter"]],
    ["from:1h message_type:text", ["filter", "filter"]],
    ["- ~", ["word", "word"]],
    ["", []],
  ])("%s", (text, kinds) => {
    expect(chipsOf(text).map((chip) => chip.kind)).toEqual(kinds);
  });
  it("begin and end where they stand", () => {
    const text = '  -agent:"a b"  ünï ';
    expect(piecesOf(text).map(({ start, end }) => text.slice(start, end))).toEqual(['-agent:"a b"', "ünï"]);
  });
});

describe("a question that is changed by a click (S663)", () => {
  it("loses a piece, and a dangling join", () => {
    const text = "a OR b";
    expect(without(text, piecesOf(text)[2] as never)).toBe("a");
    expect(without(text, piecesOf(text)[0] as never)).toBe("b");
  });
  it("gets a filter once, and loses it by the same click", () => {
    const once = toggledFilter("refund agent:old", "agent", "bob b");
    expect(once).toBe('refund agent:"bob b"');
    expect(toggledFilter(once, "agent", "bob b")).toBe("refund");
    expect(filtered("-agent:x", "agent", "y")).toBe("-agent:x agent:y");
    expect(leftOut("a", "tool", "web")).toBe("a -tool:web");
    expect(written('say "hi"')).toBe('"say hi"');
  });
  it("gets times in place of times", () => {
    expect(between("x since:1h from:2d", "A", "B")).toBe("x since:A until:B");
    expect(anyTime("x since:1h until:2h y")).toBe("x y");
  });
});
