// Commands only the console gives: taking one back, and a prompt that is sent although there are doubts.
import { act } from "~/acts/acts";
import { send } from "~/api/client";

export function undo(intervention_id: string) {
  return act(
    "Undo",
    () => send("POST /v1/interventions/{intervention_id}/undo", { params: { intervention_id } }),
    (answer) => ({
      text: `Taken back${answer.released ? `; ${answer.released} held messages were sent in order` : ""}. The record keeps both.`,
    }),
  );
}

/** `force` reaches an agent that has said nothing in the session. */
export function injectInto(session_id: string, agent_id: string, prompt: string, force: boolean) {
  return act(
    "Inject",
    () =>
      send("POST /v1/sessions/{session_id}/inject", {
        params: { session_id },
        body: { agent_id, prompt, force },
      }),
    (answer) => ({
      text: `${agent_id} gets your prompt with its next context.`,
      undo: answer.intervention_id ? () => undo(answer.intervention_id as string) : undefined,
    }),
  );
}
