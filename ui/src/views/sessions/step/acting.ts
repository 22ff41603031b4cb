// What an operator does about a step or a fact: marks it false, quarantines it, notes, pauses those a blast
// names. Each says what happened in a toast and asks what it changed again.
import { act, pause } from "~/acts/acts";
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { Quarantined } from "~/protocol/openapi";

export const STEP = "/v1/sessions/{session_id}/steps";

/** As every act tells what happened; what this one touched is asked again besides. */
async function does<T>(
  what: string,
  run: () => Promise<T>,
  told: (answer: T) => string,
  ...touched: string[]
) {
  const answer = await act(what, run, (given) => ({ text: told(given) }));
  askAgain(...touched);
  return answer;
}

const FACTS = ["/v1/memory", "/v1/facts", STEP];

export function markFalse(fact_id: string, note: string) {
  return does(
    "Marking",
    () =>
      send("POST /v1/facts/{fact_id}/false", { params: { fact_id }, body: { note: note.trim() || null } }),
    () => "Marked false. Who took it over is coloured in the graph.",
    ...FACTS,
  );
}

export function unmark(fact_id: string) {
  return does(
    "Taking the mark back",
    () => send("DELETE /v1/facts/{fact_id}/false", { params: { fact_id } }),
    () => "No longer marked false.",
    ...FACTS,
  );
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

export function quarantine(fact_id: string, correction: string) {
  return does(
    "Quarantine",
    () =>
      send("POST /v1/facts/{fact_id}/quarantine", {
        params: { fact_id },
        body: { correction, confirm: true },
      }),
    (answer) =>
      answer.status === "already_quarantined"
        ? "Everybody who holds it was paused and told already."
        : `${answer.agents.length} paused and told the correction. Unpause each when it may go on.`,
    ...FACTS,
    "/v1/sessions",
  );
}

export function annotate(
  session_id: string,
  step: string,
  note: { text: string; category: string | null; label: string | null },
) {
  return does(
    "The note",
    () =>
      send("POST /v1/sessions/{session_id}/steps/{step}/annotations", {
        params: { session_id, step },
        body: note,
      }),
    () => "Noted.",
    STEP,
  );
}

export function removeNote(annotation_id: string) {
  return does(
    "Removing the note",
    () => send("DELETE /v1/annotations/{annotation_id}", { params: { annotation_id } }),
    () => "The note is hidden; the record keeps that it was there.",
    STEP,
  );
}

/** One after the other: each can be undone by its own toast. */
export async function pauseAll(pauses: { session_id: string; agent_id: string }[]): Promise<void> {
  for (const { session_id, agent_id } of pauses)
    await pause(session_id, agent_id, "to contain a step's blast");
}
