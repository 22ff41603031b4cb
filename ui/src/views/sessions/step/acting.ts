// What an operator does about a step: notes, and pauses for those a blast names (facts: acts/facts.ts). Each says what happened in a toast and asks what it changed again.
import { act, pause } from "~/acts/acts";
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";

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
