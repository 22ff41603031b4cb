// What an operator does to agents, from wherever on the page: one function a command. Each tells what
// happened in plain words, offers its undo where the gateway has one, and asks the lists again.
import { Problem, send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { Commanded } from "~/protocol/openapi";
import { say } from "./toasts";

const TOUCHED = ["/v1/sessions", "/v1/holds", "/v1/waiting", "/v1/decisions", "/v1/reviews", "/v1/agents"];

/** Deals with a refusal where it belongs (faults at a field) and says so by `true`; else a toast tells it. */
export type Refused = (problem: Problem) => boolean;

export async function act<T>(
  what: string,
  run: () => Promise<T>,
  told: (answer: T) => { text: string; undo?: () => Promise<unknown> },
  refused?: Refused,
): Promise<T | null> {
  try {
    const answer = await run();
    const { text, undo } = told(answer);
    say({ tone: "good", text, undo });
    return answer;
  } catch (error) {
    const problem = error instanceof Problem ? error : null;
    if (problem && refused?.(problem)) return null;
    const faults = problem?.faults.map((fault) => `${fault.path}: ${fault.problem}`).join("\n");
    say({
      tone: "alert",
      // Without an answer nobody knows: do not say it did not happen.
      text:
        problem?.code === 0
          ? `${what}: ${problem.message}`
          : `${what} did not happen: ${(error as Error).message}`,
      detail: faults || undefined,
    });
    return null;
  } finally {
    askAgain(...TOUCHED);
  }
}

/** What left its hold by this, to be put at the end of a sentence. */
function sentOn({ released }: Pick<Commanded, "released">): string {
  if (!released) return "";
  return released === 1 ? "; one held message was sent" : `; ${released} held messages were sent in order`;
}

export function undo(intervention_id: string) {
  return act(
    "Undo",
    () => send("POST /v1/interventions/{intervention_id}/undo", { params: { intervention_id } }),
    (answer) => ({ text: `Taken back${sentOn(answer)}. The record keeps both.` }),
  );
}

function undoing({ intervention_id }: Commanded): (() => Promise<unknown>) | undefined {
  return intervention_id ? () => undo(intervention_id) : undefined;
}

export function pause(session_id: string, agent_id: string, note?: string) {
  return act(
    "Pause",
    () =>
      send("POST /v1/sessions/{session_id}/pause", {
        params: { session_id },
        body: { agent_id, note: note ?? null, force: false },
      }),
    (answer) => ({
      text:
        answer.status === "already_paused"
          ? `${agent_id} was paused already.`
          : `${agent_id} is told to pause; what it sends is held.`,
      undo: answer.status === "already_paused" ? undefined : () => unpause(session_id, agent_id),
    }),
  );
}

export function unpause(session_id: string, agent_id: string) {
  return act(
    "Unpause",
    () =>
      send("POST /v1/sessions/{session_id}/unpause", {
        params: { session_id },
        body: { agent_id, note: null, force: false },
      }),
    (answer) => ({
      text: `${agent_id} goes on${sentOn(answer)}.`,
    }),
  );
}

export function cancel(session_id: string, agent_id: string, note?: string) {
  return act(
    "Cancel",
    () =>
      send("POST /v1/sessions/{session_id}/cancel", {
        params: { session_id },
        body: { agent_id, note: note ?? null, force: false },
      }),
    () => ({ text: `${agent_id} is told to stop this session.` }),
  );
}

/** `force` reaches an agent that has said nothing in the session. */
export function inject(session_id: string, agent_id: string, prompt: string, force = false) {
  return act(
    "Inject",
    () =>
      send("POST /v1/sessions/{session_id}/inject", {
        params: { session_id },
        body: { agent_id, prompt, force },
      }),
    (answer) => ({ text: `${agent_id} gets your prompt with its next context.`, undo: undoing(answer) }),
  );
}

/** `needed` is how many people it takes in all; an approved message of a paused agent is held on. */
export function passing(answer: Commanded, how: string): string {
  const left = (answer.needed ?? 1) - (answer.approvals?.length ?? 1);
  if (left > 0) return `Your yes counts; ${left} more ${left === 1 ? "person" : "people"} must approve it.`;
  if (answer.state === "held") return "Approved; it leaves when the agent's pause or the kill-switch ends.";
  return `Forwarded ${how}.`;
}

export function refusing(answer: Commanded): string {
  const others = (answer.rejected ?? 1) - 1;
  const more = others > 0 ? ` So ${others === 1 ? "is one" : `are ${others}`} that followed from it.` : "";
  return `Never forwarded; ${answer.agent_id} is told.${more}`;
}

export interface Held {
  session_id: string;
  agent_id: string;
  message_id: string;
  /** Digest of the exact message that was shown: the gateway refuses if it is another by now. */
  digest?: string | null;
  note?: string | null;
}

export function approve({ session_id, digest = null, note = null, ...held }: Held, refused?: Refused) {
  return act(
    "Approve",
    () =>
      send("POST /v1/sessions/{session_id}/approve", {
        params: { session_id },
        body: { ...held, digest, note },
      }),
    (answer) => ({ text: passing(answer, "as it stands") }),
    refused,
  );
}

export function edit(
  { session_id, digest = null, note = null, ...held }: Held,
  new_content: Record<string, unknown>,
  refused?: Refused,
) {
  return act(
    "Edit",
    () =>
      send("POST /v1/sessions/{session_id}/edit", {
        params: { session_id },
        body: { ...held, digest, note, new_content },
      }),
    (answer) => ({ text: passing(answer, "as you edited it") }),
    refused,
  );
}

export function reject({ session_id, digest = null, note = null, ...held }: Held, refused?: Refused) {
  return act(
    "Reject",
    () =>
      send("POST /v1/sessions/{session_id}/reject", {
        params: { session_id },
        body: { ...held, digest, note },
      }),
    (answer) => ({ text: refusing(answer) }),
    refused,
  );
}

export function rewrite(
  session_id: string,
  agent_id: string,
  original_message_id: string,
  new_content: Record<string, unknown>,
  refused?: Refused,
) {
  return act(
    "Edit message",
    () =>
      send("POST /v1/sessions/{session_id}/rewrite", {
        params: { session_id },
        body: { agent_id, original_message_id, new_content },
      }),
    (answer) => ({
      text: "The held message has new content; it goes out on release.",
      undo: undoing(answer),
    }),
    refused,
  );
}

export function respond(
  decision_id: string,
  option: { option_id: string; label: string },
  note: string | null,
) {
  return act(
    "Answer",
    () =>
      send("POST /v1/decisions/{decision_id}/respond", {
        params: { decision_id },
        body: { selected_option_id: option.option_id, respondent_note: note },
      }),
    (answer) => ({ text: `Answered “${option.label}”; ${answer.agent_id ?? "the agent"} is told.` }),
  );
}

export function dismiss(decision_id: string) {
  return act(
    "Cancel",
    () => send("POST /v1/decisions/{decision_id}/cancel", { params: { decision_id } }),
    (answer) => ({ text: `The question is withdrawn; ${answer.agent_id ?? "the agent"} is told.` }),
  );
}

export type Outcome = "ok" | "wrong" | "unsure";

export function review(sequence_number: string, verdict: Outcome, note: string | null) {
  return act(
    "Review",
    () =>
      send("POST /v1/reviews/{sequence_number}", { params: { sequence_number }, body: { verdict, note } }),
    () => ({ text: `Recorded: ${{ ok: "it is fine", wrong: "it is wrong", unsure: "unsure" }[verdict]}.` }),
  );
}

/** Do it, and whatever came of it, ask again what begins with these paths. */
export async function andAsk<T>(paths: string[], doing: Promise<T>): Promise<T> {
  try {
    return await doing;
  } finally {
    askAgain(...paths);
  }
}
