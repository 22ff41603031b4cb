import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { Fragment, jsx, jsxs } from "./runtime";
import { shown } from "./shown";

const RLO = String.fromCharCode(0x202e);

describe("every text of a page (S1110)", () => {
  it("is shown with invisible characters named, as text and in attributes, in every element", () => {
    const made = jsxs("p", {
      title: `a${RLO}b`,
      children: [`bob${RLO}1234`, " → ", jsx(Fragment, { children: "pаypal" })],
    });
    expect(renderToStaticMarkup(made)).toBe(
      '<p title="a⟨U+202E⟩b">bob⟨U+202E⟩1234 → pаypal⟨Latin+Cyrillic⟩</p>',
    );
  });
  it("isolates right-to-left text, so that its neighbours are not reordered", () => {
    const made = jsxs("p", { children: ["שלום", " → ", "bob"] });
    expect(renderToStaticMarkup(made)).toBe("<p><bdi>שלום</bdi> → bob</p>");
    expect(renderToStaticMarkup(jsx("option", { children: "שלום" }))).toBe("<option>שלום</option>");
  });
  it("changes neither typed input nor component props, and allocates nothing needlessly", () => {
    const props = { value: `a${RLO}b`, children: ["plain", 7, null] };
    expect(shown("input", props)).toBe(props);
    const Inner = ({ children }: { children: string }) => jsx("b", { children });
    expect(renderToStaticMarkup(createElement(Inner, null, `a${RLO}b`))).toBe("<b>a⟨U+202E⟩b</b>");
  });
});
