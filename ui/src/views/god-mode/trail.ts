// A God Mode audit event for display: mark and word for its kind, actor, and the event's text with names
// instead of ids. Pure.
import type { AuditEvent } from "~/protocol/openapi";

export type About = "kill_switch" | "instructions" | "access" | "budgets";

export interface Line {
  id: string;
  at: string;
  by: string | null;
  mark: string;
  tone: string;
  word: string;
  text: string;
}

const KINDS: Record<string, { mark: string; tone: string; word: string }> = {
  kill_switch_requested: { mark: "…", tone: "blocked", word: "armed" },
  kill_switch_engaged: { mark: "■", tone: "alert", word: "engaged" },
  kill_switch_released: { mark: "▸", tone: "good", word: "released" },
  instruction_issued: { mark: "¶", tone: "blocked", word: "instructions" },
  user_created: { mark: "+", tone: "active", word: "user" },
  user_disabled: { mark: "×", tone: "alert", word: "disabled" },
  role_changed: { mark: "⇄", tone: "blocked", word: "role" },
  key_created: { mark: "+", tone: "active", word: "key" },
  key_revoked: { mark: "×", tone: "alert", word: "revoked" },
  login_issued: { mark: "↗", tone: "idle", word: "sign-in link" },
  permission_denied: { mark: "!", tone: "violation", word: "refused" },
  budget_set: { mark: "$", tone: "blocked", word: "budget" },
  tenant_created: { mark: "+", tone: "active", word: "tenant" },
};
const OTHER = { mark: "·", tone: "idle", word: "act" };

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);

export function lineOf(event: AuditEvent, nameOf: (id: string) => string): Line {
  const { body, attributes } = event;
  const kind = text(body.event_type) ?? "";
  const why = text((body.detail as Record<string, unknown> | undefined)?.reason ?? body.reason);
  const summary = (text(body.summary) ?? kind).replace(/\busr_[\w-]+/g, (id) => nameOf(id));
  return {
    id: event.audit_event_id,
    at: event.timestamp,
    by: text(attributes["av.sender.entity_id"]),
    ...(KINDS[kind] ?? OTHER),
    text: why && kind.startsWith("kill_switch") ? `${summary} (“${why}”)` : summary,
  };
}
