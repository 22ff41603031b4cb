import { expect, test } from "vitest";
import type { ExporterItem } from "~/protocol/openapi";
import { isElsewhere, leastOf, NEW, readExporter, readHeaders, valuesOf } from "./exporters";

test("headers are lines of name and value; an invalid line is a fault", () => {
  expect(readHeaders("authorization: Bearer x:y\n\n x-scope : a ").headers).toEqual({
    authorization: "Bearer x:y",
    "x-scope": "a",
  });
  expect(readHeaders("just words").bad).toBe("just words");
  expect(readExporter({ ...NEW, name: "n", url: "https://x", headers: "nonsense" }).faults).toHaveProperty(
    "headers",
  );
});

test("an exporter round-trips through the form; header values are unknown here", () => {
  const body = readExporter({
    ...NEW,
    name: "grafana",
    url: "https://otlp.example.com",
    agents: ["bob"],
  }).body;
  const shown = valuesOf({ ...body, headers: ["authorization"] } as unknown as ExporterItem);
  expect(shown.headers).toBe("");
  expect(shown.severity_min).toBe("1");
  expect(leastOf("1")).toHaveLength(5);
  expect(leastOf("10").at(-1)?.label).toBe("severity 10 and above");
  expect(readExporter(shown).body).toEqual(body);
  expect(Object.keys(readExporter(NEW).faults ?? {})).toEqual(["name", "url"]);
});

test("only a new host loses the headers, not a new path", () => {
  const at = "https://otlp.example.com/v1/logs";
  expect(isElsewhere(at, "https://otlp.example.com/other ")).toBe(false);
  expect(isElsewhere(at, "https://otlp.example.com:444/v1/logs")).toBe(true);
  expect(isElsewhere(at, "http://otlp.example.com/v1/logs")).toBe(true);
  expect(isElsewhere(at, "https://else.example.com/v1/logs")).toBe(true);
  expect(isElsewhere(at, "https:")).toBe(true);
});
