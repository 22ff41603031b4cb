// Commands on facts: mark false, quarantine, resolve a conflict. Nothing resolves itself; each command shows
// the result and refetches what it changed.
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { plural } from "~/plural";
import type { Quarantined } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

export const FACTS = ["/v1/memory", "/v1/facts", "/v1/sessions/{session_id}/steps"];

export function markFalse(fact_id: string, note: string, refused?: Refused) {
  return runCommand(
    "Marking",
    () =>
      send("POST /v1/facts/{fact_id}/false", { params: { fact_id }, body: { note: note.trim() || null } }),
    () => ({
      text: "Marked false. Affected steps are coloured in the graph.",
      undo: () => unmark(fact_id),
    }),
    refused,
  ).finally(() => refetch(...FACTS));
}

export function unmark(fact_id: string) {
  return runCommand(
    "Unmarking",
    () => send("DELETE /v1/facts/{fact_id}/false", { params: { fact_id } }),
    () => ({ text: "No longer marked false." }),
  ).finally(() => refetch(...FACTS));
}

export interface Planned {
  agent_id: string;
  session_id: string;
  pause: boolean;
  inject: boolean;
}

/** Preview of a quarantine; changes nothing. */
export function plan(fact_id: string, correction: string): Promise<Quarantined> {
  return send("POST /v1/facts/{fact_id}/quarantine", {
    params: { fact_id },
    query: { dry_run: true },
    body: { correction },
  });
}

/** `partial`: the fact spread further than the search limit, and only those found are to be quarantined. */
export function quarantine(fact_id: string, correction: string, partial = false) {
  return runCommand(
    "Quarantine",
    () =>
      send("POST /v1/facts/{fact_id}/quarantine", {
        params: { fact_id },
        body: { correction, confirm: true, accept_partial: partial },
      }),
    (answer) => ({
      text:
        answer.status === "already_quarantined"
          ? "All affected agents were already paused and corrected."
          : `${plural(answer.agents.length, "agent")} paused and sent the correction. Resume each when it is ready.`,
    }),
  ).finally(() => refetch(...FACTS, "/v1/sessions"));
}

/** Agents in scope that hold another value are sent the correction as an injected prompt. */
export function reconcile(subject: string, scope: string, value: string, refused?: Refused) {
  return runCommand(
    "Resolving",
    () => send("POST /v1/drift/reconcile", { body: { subject, scope, value, confirm: true } }),
    (answer) => ({
      text:
        answer.status === "already_reconciled"
          ? "All agents holding another value were already corrected and have not sent anything since."
          : `Correction to ${value} sent to ${plural(answer.agents.length, "agent")}. The conflict closes when they state it.`,
    }),
    refused,
  ).finally(() => refetch("/v1/drift"));
}
