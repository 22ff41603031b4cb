// Step commands: notes, and pauses of the agents in a minimal cut set (facts: commands/facts.ts). Each shows
// a toast and refetches what it changed.

import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { pause, runCommand } from "~/commands/session";

export const STEP = "/v1/sessions/{session_id}/steps";

/** Runs a command with a toast and refetches what it changed. */
async function does<T>(
  what: string,
  run: () => Promise<T>,
  message: (answer: T) => string,
  ...touched: string[]
) {
  const answer = await runCommand(what, run, (given) => ({ text: message(given) }));
  refetch(...touched);
  return answer;
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
    () => "Note saved.",
    STEP,
  );
}

export function removeNote(annotation_id: string) {
  return does(
    "Removing the note",
    () => send("DELETE /v1/annotations/{annotation_id}", { params: { annotation_id } }),
    () => "The note is hidden; the audit trail keeps it.",
    STEP,
  );
}

/** One after the other: each toast has its own undo. */
export async function pauseMinimalCut(pauses: { session_id: string; agent_id: string }[]): Promise<void> {
  for (const { session_id, agent_id } of pauses)
    await pause(session_id, agent_id, "to contain a step's blast");
}
