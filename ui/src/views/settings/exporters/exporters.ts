// Form of an exporter. Header values are write-only. Pure.
import type { ExporterItem, NewExporterBody } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";

export const STATUSES: Record<ExporterItem["status"], { tone: string; word: string }> = {
  caught_up: { tone: "good", word: "✓ caught up" },
  behind: { tone: "active", word: "▸ behind" },
  failing: { tone: "alert", word: "× failing" },
  paused: { tone: "blocked", word: "‖ paused" },
};
export const LEAST = [
  { value: "1", label: "everything" },
  { value: "9", label: "INFO and above" },
  { value: "13", label: "WARN and above" },
  { value: "17", label: "ERROR and above" },
  { value: "21", label: "FATAL" },
];

/** Includes a value set elsewhere. */
export function leastOf(severity: string) {
  if (LEAST.some((one) => one.value === severity)) return LEAST;
  return [...LEAST, { value: severity, label: `severity ${severity} and above` }];
}

export const NEW: Values = {
  name: "",
  protocol: "http",
  url: "",
  headers: "",
  from: "now",
  event_types: [],
  agents: [],
  severity_min: "1",
};

export function valuesOf(item: ExporterItem): Values {
  return {
    name: item.name,
    protocol: item.protocol,
    url: item.url,
    headers: "",
    from: "now",
    event_types: item.filters.event_types ?? [],
    agents: item.filters.agents ?? [],
    severity_min: String(item.filters.severity_min ?? 1),
  };
}

/** Lines of `name: value`; null and the invalid line otherwise. */
export function readHeaders(text: string): { headers: Record<string, string>; bad: string | null } {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const [, name, value] = /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined || !value) return { headers: {}, bad: line.trim().slice(0, 12) };
    headers[name] = value;
  }
  return { headers, bad: null };
}

export function readExporter(
  values: Values,
): { body: NewExporterBody; faults: null } | { body: null; faults: Faults } {
  const text = (name: string) => String(values[name] ?? "").trim();
  const faults: Faults = {};
  if (text("name") === "") faults.name = "Enter a name.";
  if (text("url") === "") faults.url = "Enter the backend's URL.";
  const { headers, bad } = readHeaders(text("headers"));
  if (bad !== null) faults.headers = "Each line must be a name, a colon and a value.";
  if (Object.keys(faults).length > 0) return { body: null, faults };
  return {
    body: {
      name: text("name"),
      protocol: text("protocol") as "http" | "grpc",
      url: text("url"),
      headers,
      from: text("from") as "now" | "start",
      filters: {
        event_types: values.event_types as string[],
        agents: values.agents as string[],
        severity_min: Number(text("severity_min")),
      },
    },
    faults: null,
  };
}

/** Whether the host changes; a new host does not receive the stored headers. */
export function isElsewhere(before: string, after: string): boolean {
  const [was, is] = [before, after.trim()].map((url) => (URL.canParse(url) ? new URL(url) : null));
  return was?.protocol !== is?.protocol || was?.host !== is?.host;
}
