import { describe, expect, it } from "vitest";
import { beginning, inert, inertNamed } from "./inert";

const ESC = String.fromCharCode(27);
const RLO = String.fromCharCode(0x202e);
const TAG = String.fromCodePoint(0xe0041);

describe("text of strangers (S668)", () => {
  it("shows what would be obeyed as signs, one for one", () => {
    expect(inert(`${ESC}[31mred`)).toBe("␛[31mred");
    expect(inert(`pay${RLO}bob`)).toBe("pay�bob");
    for (const text of [`a${RLO}b`, `a${ESC}b`, `a${TAG}b`, "a\u200bb"])
      expect(inert(text)).toHaveLength(text.length);
  });
  it("leaves lines, tabs and other scripts as they are", () => {
    const text = "a\tb\nשלום 你好 🚀 <b>x</b>";
    expect(inert(text)).toBe(text);
    expect(inertNamed(text)).toBe(text);
  });
  it("names them for whoever looks closely", () => {
    expect(inertNamed(`a${RLO}b\u200bc${ESC}`)).toBe("a⟨U+202E⟩b⟨U+200B⟩c␛");
  });
  it("cuts what is too long, never half a character", () => {
    expect(beginning("abc", 3)).toEqual({ text: "abc", left: 0 });
    expect(beginning("ab🚀c", 3)).toEqual({ text: "ab", left: 3 });
    expect(beginning("abcdef", 3)).toEqual({ text: "abc", left: 3 });
  });
});
