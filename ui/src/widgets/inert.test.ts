import { describe, expect, it } from "vitest";
import cases from "../../../tests/vectors/golden/visible.json";
import { hasTwice, indented } from "./formatJson";
import { beginning, escaped, inert, turns, warningsOf } from "./inert";

const RLO = String.fromCharCode(0x202e);

describe("untrusted text (S668, S1110)", () => {
  it.each(cases.map(({ text, visible }) => [visible, text]))("is shown as %s", (visible, text) => {
    expect(inert(text)).toBe(visible);
    expect(inert(visible)).toBe(visible);
  });
  it("leaves lines, tabs, emoji and other scripts as they are, and isolates right-to-left text", () => {
    const text = "a\tb\nשלום 你好 привет мир 🚀 👩\u200d💻 ❤\ufe0f 5 µs <b>x</b>";
    expect(inert(text)).toBe(text);
    expect(warningsOf(text)).toEqual([]);
    expect([turns(text), turns("plain")]).toEqual([true, false]);
  });
  it("lists warnings to be read before a decision", () => {
    expect(warningsOf(`pay bob${RLO}1234`)).toEqual([
      "contains invisible or text-direction characters: ⟨U+202E⟩",
    ]);
    expect(warningsOf("pаypal")).toEqual(["contains words that mix look-alike letters of several scripts"]);
    expect(warningsOf("a\tb\n")).toEqual([]);
  });
  it("is edited with escapes: the same value, without invisible characters", () => {
    const json = JSON.stringify({ to: `bob${RLO}1234`, tag: "\u{e0041}" }, null, 2);
    expect(escaped(json)).toContain("bob\\u202e1234");
    expect(JSON.parse(escaped(json))).toEqual(JSON.parse(json));
    expect(warningsOf(escaped(json))).toEqual([]);
  });
  it("is cut if too long, never within a character", () => {
    expect(beginning("abc", 3)).toEqual({ text: "abc", left: 0 });
    expect(beginning("ab🚀c", 3)).toEqual({ text: "ab", left: 3 });
    expect(beginning("abcdef", 3)).toEqual({ text: "abc", left: 3 });
  });
});

describe("formatted JSON (S1111)", () => {
  it("equals JSON.stringify if parsing loses nothing", () => {
    for (const value of [{ a: [1, { b: [] }, {}], c: 'x"\\ {', d: null }, [], [true, "ü"]])
      expect(indented(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
    expect(indented('"\\u00fc"')).toBe('"ü"');
    expect(indented("{ not json")).toBe("{ not json");
  });
  it("keeps the digits of a number and a duplicate name", () => {
    expect(indented('{"sum":12345678901234567890,"to":"bob","to":"eve"}')).toBe(
      '{\n  "sum": 12345678901234567890,\n  "to": "bob",\n  "to": "eve"\n}',
    );
    expect(hasTwice('{"to":"bob","t\\u006f":"eve"}')).toBe(true);
    expect(hasTwice('[{"to":"bob"},{"to":"eve","in":{"to":1}}]')).toBe(false);
  });
});
