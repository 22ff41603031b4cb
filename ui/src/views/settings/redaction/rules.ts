// Form of a redaction rule, and its sample message. Pure.
import type { NewRedaction } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";

export const NEW: Values = { type: "builtin", kind: "email", name: "", pattern: "", path: "", note: "" };

/** A valid message with a match for each built-in kind. */
export const SAMPLE = `{
  "meta": { "trace_id": "7b8f6a52-0f6e-4bb1-9a3d-0d9f3f7f2a11", "timestamp": "2026-11-16T09:00:00Z" },
  "identity": { "agent_id": "writer-1", "agent_type": "writer", "capability_version": "v2.1.0" },
  "action": {
    "tool_call": "send_mail",
    "tool_input": "{\\"to\\": \\"ada@example.com\\", \\"order\\": \\"ACME-123456\\"}",
    "status": "success"
  },
  "cognition": { "intent": "Inform ada@example.com that ACME-123456 has shipped" }
}`;

export function readRedaction(
  values: Values,
): { body: NewRedaction; faults: null } | { body: null; faults: Faults } {
  const text = (name: string) => String(values[name] ?? "").trim();
  const type = text("type") as NewRedaction["type"];
  const faults: Faults = {};
  if (type === "builtin") return { body: { type, name: text("kind"), note: text("note") }, faults: null };
  if (text("name") === "") faults.name = "Enter a short word: it replaces the redacted text.";
  if (type === "pattern" && text("pattern") === "") faults.pattern = "Enter a pattern.";
  if (type === "field" && text("path") === "") faults.path = "Enter a path.";
  if (Object.keys(faults).length > 0) return { body: null, faults };
  const member = type === "pattern" ? { pattern: String(values.pattern) } : { path: text("path") };
  return { body: { type, name: text("name"), note: text("note"), ...member }, faults: null };
}
