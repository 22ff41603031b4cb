import { expect, test } from "vitest";
import {
  crumbsOf,
  focusIn,
  focusOf,
  focusUrl,
  lookingOf,
  minuteOf,
  orderOf,
  orderText,
  turned,
} from "./viewState";

test("an empty URL is the live logical map of the whole mesh", () => {
  expect(lookingOf({})).toEqual({
    layer: "logical",
    level: null,
    by: "type",
    cluster: null,
    group: null,
    find: "",
    hide: "",
    at: null,
    list: false,
    order: { by: "state", down: false },
  });
});

test.each([
  ["layer", { layer: "martian" }, "logical"],
  ["level", { level: "planet" }, null],
  ["at", { at: "yesterday" }, null],
  ["by", { by: "colour" }, "type"],
] as const)("invalid values count as absent: %s", (member, search, expected) => {
  expect(lookingOf(search)[member]).toBe(expected);
});

test("agents without a cluster can be linked to", () => {
  const url = focusUrl({ cluster: "", group: "writer" });
  expect(url).toEqual({ cluster: "(none)", group: "writer" });
  const looking = lookingOf({ cluster: url.cluster ?? undefined, group: url.group ?? undefined });
  expect(focusOf(looking)).toEqual({ cluster: "", group: "writer" });
  expect(focusOf(lookingOf({}))).toBeNull();
});

test("a time is rounded down to its minute", () => {
  expect(minuteOf("2026-02-16T14:32:59.999Z")).toBe("2026-02-16T14:32:00Z");
  expect(minuteOf("2026-02-16T14:32:10+02:00")).toBe("2026-02-16T12:32:00Z");
});

test("a sort order survives its text form", () => {
  for (const order of [
    { by: "cost", down: true },
    { by: "name", down: false },
  ])
    expect(orderOf(orderText(order))).toEqual(order);
});

test("a column clicked twice reverses; another starts in its default order", () => {
  const first = turned({ by: "name", down: false }, "cost", true);
  expect(first).toEqual({ by: "cost", down: true });
  expect(turned(first, "cost", true)).toEqual({ by: "cost", down: false });
});

test("crumbs lead back step by step", () => {
  const crumbs = crumbsOf({ cluster: "onprem-zrh", group: "writer" });
  expect(crumbs.map((crumb) => crumb.name)).toEqual(["Mesh", "onprem-zrh", "writer"]);
  expect(crumbs[1]?.to).toEqual({ cluster: "onprem-zrh", group: null });
  expect(crumbsOf({ cluster: null, group: null })).toHaveLength(1);
});

test.each([
  ["cluster:aws-eu", { cluster: "aws-eu" }],
  ["type:writer", { group: "writer" }],
  ["group:aws-eu/writer", { cluster: "aws-eu", group: "writer" }],
  ["group:/", { cluster: "", group: "" }],
  ["writer-1", null],
])("the map's %s is a drill-down", (id, focus) => {
  expect(focusIn(id)).toEqual(focus);
});
