import { expect, test } from "vitest";
import { NEW, readRedaction, SAMPLE } from "./rules";

test("a rule has only the member of its type", () => {
  expect(readRedaction({ ...NEW, pattern: "x" }).body).toEqual({ type: "builtin", name: "email", note: "" });
  const own = { ...NEW, type: "pattern", name: "acme", pattern: "ACME-[0-9]{6}", path: "a.b" };
  expect(readRedaction(own).body).toEqual({
    type: "pattern",
    name: "acme",
    note: "",
    pattern: "ACME-[0-9]{6}",
  });
  expect(readRedaction({ ...own, type: "field" }).body).toEqual({
    type: "field",
    name: "acme",
    note: "",
    path: "a.b",
  });
});

test("what is missing is reported at its field, and the sample is JSON", () => {
  expect(Object.keys(readRedaction({ ...NEW, type: "pattern" }).faults ?? {})).toEqual(["name", "pattern"]);
  expect(Object.keys(readRedaction({ ...NEW, type: "field" }).faults ?? {})).toEqual(["name", "path"]);
  expect(JSON.parse(SAMPLE)).toHaveProperty("identity.agent_id");
});
