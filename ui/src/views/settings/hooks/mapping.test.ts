import { expect, test } from "vitest";
import type { HookItem } from "~/protocol/openapi";
import { fieldOfFault, NEW, readHook, readMapping, readSample, readText, valuesOf } from "./mapping";

const filled = { ...NEW, name: "pulls", intent: "=join('', ['Review ', action])", target: "code-reviewer" };

test("plain text is literal, after = it is an expression", () => {
  expect(readText(" Look at it ")).toBe("Look at it");
  expect(readText("= action")).toEqual({ expression: "action" });
  expect(readMapping({ ...filled, to: "cluster", when: "action" }).mapping).toEqual({
    intent: { expression: "join('', ['Review ', action])" },
    target: { cluster: "code-reviewer" },
    when: "action",
  });
});

test("what is missing is reported at its field", () => {
  expect(Object.keys(readHook(NEW).faults ?? {})).toEqual(["intent", "target", "name"]);
  expect(readHook({ ...filled, window_s: "1 s" }).faults).toEqual({ window_s: "Must be from 10 s to 1 h." });
  expect(readHook({ ...filled, intent: "=" }).faults).toHaveProperty("intent");
});

test("a hook round-trips through the form", () => {
  const body = readHook(filled).body;
  expect(body).toMatchObject({ secret: null, window_s: 300, scheme: "standard" });
  expect(readHook(valuesOf(body as unknown as HookItem)).body).toEqual(body);
});

test("an invalid sample is reported, a fault finds its field", () => {
  expect(readSample('{"a": 1}').body).toEqual({ a: 1 });
  expect(readSample("{a").fault).toContain("Invalid JSON");
  expect(fieldOfFault("target.agent")).toBe("target");
});
