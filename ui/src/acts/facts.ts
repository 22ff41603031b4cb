// What an operator does about what agents hold to be true: marks a fact false, quarantines it, rules in a
// disagreement. Nothing resolves itself; each tells what happened and asks again what it touched.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { Quarantined } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

export const FACTS = ["/v1/memory", "/v1/facts", "/v1/sessions/{session_id}/steps"];

export function markFalse(fact_id: string, note: string, refused?: Refused) {
  return act(
    "Marking",
    () =>
      send("POST /v1/facts/{fact_id}/false", { params: { fact_id }, body: { note: note.trim() || null } }),
    () => ({
      text: "Marked false. Who took it over is coloured in the graph.",
      undo: () => unmark(fact_id),
    }),
    refused,
  ).finally(() => askAgain(...FACTS));
}

export function unmark(fact_id: string) {
  return act(
    "Taking the mark back",
    () => send("DELETE /v1/facts/{fact_id}/false", { params: { fact_id } }),
    () => ({ text: "No longer marked false." }),
  ).finally(() => askAgain(...FACTS));
}

export interface Planned {
  agent_id: string;
  session_id: string;
  pause: boolean;
  inject: boolean;
}

/** What a quarantine would do; nothing happens. */
export function plan(fact_id: string, correction: string): Promise<Quarantined> {
  return send("POST /v1/facts/{fact_id}/quarantine", {
    params: { fact_id },
    query: { dry_run: true },
    body: { correction },
  });
}

/** `partial`: it spread further than is looked at, and those found are to be quarantined all the same. */
export function quarantine(fact_id: string, correction: string, partial = false) {
  return act(
    "Quarantine",
    () =>
      send("POST /v1/facts/{fact_id}/quarantine", {
        params: { fact_id },
        body: { correction, confirm: true, accept_partial: partial },
      }),
    (answer) => ({
      text:
        answer.status === "already_quarantined"
          ? "Everybody who holds it was paused and told already."
          : `${answer.agents.length} paused and told the correction. Unpause each when it may go on.`,
    }),
  ).finally(() => askAgain(...FACTS, "/v1/sessions"));
}

/** Those of the scope who hold another value are told by an inject. */
export function reconcile(subject: string, scope: string, value: string, refused?: Refused) {
  return act(
    "The ruling",
    () => send("POST /v1/drift/reconcile", { body: { subject, scope, value, confirm: true } }),
    (answer) => ({
      text:
        answer.status === "already_reconciled"
          ? "Everybody who holds another value was told before and has said nothing since."
          : `${answer.agents.length} ${answer.agents.length === 1 ? "agent is" : "agents are"} told that it is ${value}. The conflict ends when they state it.`,
    }),
    refused,
  ).finally(() => askAgain("/v1/drift"));
}
