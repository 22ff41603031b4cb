// Form of an inbound webhook's mapping: literal text, or after `=` an expression over the body, as on the
// command line.
import type { Expression, HookItem, HookMapping, NewHookBody } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";
import { secondsOf, spanFault, spanText } from "../spans";

export const SCHEMES = {
  standard: "Standard Webhooks",
  github: "GitHub",
  stripe: "Stripe",
  slack: "Slack",
} as const;
export type Scheme = keyof typeof SCHEMES;
export const TARGETS = ["agent", "capability", "cluster"] as const;
const FORMULAS = ["payload", "session", "when", "delivery_id"] as const;

export const NEW: Values = {
  name: "",
  scheme: "standard",
  secret: "",
  window_s: "5 min",
  intent: "",
  to: "capability",
  target: "",
  when: "",
  payload: "",
  session: "",
  delivery_id: "",
};

export const SAMPLE = `{
  "action": "opened",
  "number": 7,
  "repository": { "full_name": "acme/site" },
  "pull_request": { "title": "Fix the header" }
}`;

export function written(found: string | Expression | null | undefined): string {
  if (!found) return "";
  return typeof found === "string" ? found : `=${found.expression}`;
}

export function readText(text: string): string | Expression {
  const trimmed = text.trim();
  return trimmed.startsWith("=") ? { expression: trimmed.slice(1).trim() } : trimmed;
}

export function valuesOf(hook: HookItem): Values {
  const { mapping } = hook;
  const to = TARGETS.find((kind) => mapping.target[kind]) ?? "agent";
  return {
    name: hook.name,
    scheme: hook.scheme,
    secret: "",
    window_s: spanText(hook.window_s),
    intent: written(mapping.intent),
    to,
    target: written(mapping.target[to]),
    when: mapping.when ?? "",
    payload: mapping.payload === "@" ? "" : (mapping.payload ?? ""),
    session: mapping.session ?? "",
    delivery_id: mapping.delivery_id ?? "",
  };
}

/** The mapping, or its missing parts. */
export function readMapping(
  values: Values,
): { mapping: HookMapping; faults: null } | { mapping: null; faults: Faults } {
  const text = (name: string) => String(values[name] ?? "").trim();
  const faults: Faults = {};
  if (text("intent").replace(/^=/, "").trim() === "") faults.intent = "Enter an intent.";
  if (text("target").replace(/^=/, "").trim() === "") faults.target = "Enter a target.";
  if (Object.keys(faults).length > 0) return { mapping: null, faults };
  const mapping: HookMapping = {
    intent: readText(text("intent")),
    target: { [text("to")]: readText(text("target")) },
  };
  for (const name of FORMULAS) if (text(name) !== "") mapping[name] = text(name);
  return { mapping, faults: null };
}

export function readHook(
  values: Values,
): { body: NewHookBody; faults: null } | { body: null; faults: Faults } {
  const read = readMapping(values);
  const faults: Faults = { ...read.faults };
  const name = String(values.name ?? "").trim();
  if (name === "") faults.name = "Enter a name.";
  const late = spanFault(String(values.window_s), 10, 3_600);
  if (late) faults.window_s = late;
  if (read.mapping === null || Object.keys(faults).length > 0) return { body: null, faults };
  return {
    body: {
      name,
      scheme: values.scheme as Scheme,
      mapping: read.mapping,
      window_s: secondsOf(String(values.window_s)) ?? 300,
      secret: String(values.secret ?? "") || null,
    },
    faults: null,
  };
}

/** The sample as a body, or its JSON error. */
export function readSample(text: string): { body: unknown; fault: null } | { body: null; fault: string } {
  try {
    return { body: JSON.parse(text), fault: null };
  } catch (error) {
    return { body: null, fault: `Invalid JSON: ${(error as Error).message}` };
  }
}

/** The form field of a mapping fault: `target.agent` is one field here. */
export function fieldOfFault(path: string): string {
  return path.split(".")[0] ?? path;
}
