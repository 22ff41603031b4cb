// Operator commands on a session's agents, usable from any page: one function per command. Each shows a toast
// with the result, offers an undo where the gateway has one, and refetches the affected lists.
import { Problem, send } from "~/api/client";
import { refetch } from "~/api/queries";
import { noun, plural } from "~/plural";
import type { Commanded } from "~/protocol/openapi";
import { showToast } from "./toasts";

const TOUCHED = ["/v1/sessions", "/v1/holds", "/v1/waiting", "/v1/decisions", "/v1/reviews", "/v1/agents"];

/**
 * Handles a refusal at its place in the form (faults at a field) and returns `true`; otherwise a toast shows
 * it.
 */
export type Refused = (problem: Problem) => boolean;

export async function runCommand<T>(
  what: string,
  run: () => Promise<T>,
  toToast: (answer: T) => { text: string; undo?: () => Promise<unknown> },
  refused?: Refused,
): Promise<T | null> {
  try {
    const answer = await run();
    const { text, undo } = toToast(answer);
    showToast({ tone: "good", text, undo });
    return answer;
  } catch (error) {
    const problem = error instanceof Problem ? error : null;
    if (problem && refused?.(problem)) return null;
    const faults = problem?.faults.map((fault) => `${fault.path}: ${fault.problem}`).join("\n");
    showToast({
      tone: "alert",
      // Without a response the outcome is unknown: do not claim that it failed.
      text:
        problem?.code === 0 ? `${what}: ${problem.message}` : `${what} failed: ${(error as Error).message}`,
      detail: faults || undefined,
    });
    return null;
  } finally {
    refetch(...TOUCHED);
  }
}

/** What this command released from hold, as the end of a sentence. */
function releasedText({ released }: Pick<Commanded, "released">): string {
  if (!released) return "";
  return `; ${plural(released, "held message")} sent in order`;
}

export function undo(intervention_id: string) {
  return runCommand(
    "Undo",
    () => send("POST /v1/interventions/{intervention_id}/undo", { params: { intervention_id } }),
    (answer) => ({ text: `Undone${releasedText(answer)}. The audit trail keeps both.` }),
  );
}

function undoOf({ intervention_id }: Commanded): (() => Promise<unknown>) | undefined {
  return intervention_id ? () => undo(intervention_id) : undefined;
}

export function pause(session_id: string, agent_id: string, note?: string) {
  return runCommand(
    "Pause",
    () =>
      send("POST /v1/sessions/{session_id}/pause", {
        params: { session_id },
        body: { agent_id, note: note ?? null, force: false },
      }),
    (answer) => ({
      text:
        answer.status === "already_paused"
          ? `${agent_id} was already paused.`
          : `Pause sent to ${agent_id}; its messages are held.`,
      undo: answer.status === "already_paused" ? undefined : () => unpause(session_id, agent_id),
    }),
  );
}

export function unpause(session_id: string, agent_id: string) {
  return runCommand(
    "Resume",
    () =>
      send("POST /v1/sessions/{session_id}/unpause", {
        params: { session_id },
        body: { agent_id, note: null, force: false },
      }),
    (answer) => ({
      text: `${agent_id} resumed${releasedText(answer)}.`,
    }),
  );
}

export function cancel(session_id: string, agent_id: string, note?: string) {
  return runCommand(
    "Cancel",
    () =>
      send("POST /v1/sessions/{session_id}/cancel", {
        params: { session_id },
        body: { agent_id, note: note ?? null, force: false },
      }),
    () => ({ text: `Cancel sent to ${agent_id} for this session.` }),
  );
}

/** `force` reaches an agent that has not sent anything in the session yet. */
export function inject(session_id: string, agent_id: string, prompt: string, force = false) {
  return runCommand(
    "Inject",
    () =>
      send("POST /v1/sessions/{session_id}/inject", {
        params: { session_id },
        body: { agent_id, prompt, force },
      }),
    (answer) => ({
      text: `Prompt queued: ${agent_id} receives it with its next context.`,
      undo: undoOf(answer),
    }),
  );
}

/**
 * `needed` is the number of approvals required in total; an approved message of a paused agent stays held.
 */
export function approvedText(answer: Commanded, how: string): string {
  const left = (answer.needed ?? 1) - (answer.approvals?.length ?? 1);
  if (left > 0) return `Your approval is recorded; ${left} more ${noun(left, "is", "are")} required.`;
  if (answer.state === "held")
    return "Approved; it will be sent when the agent's pause or the kill switch ends.";
  return `Approved and sent ${how}.`;
}

export function rejectedText(answer: Commanded): string {
  const others = (answer.rejected ?? 1) - 1;
  const more =
    others > 0 ? ` ${plural(others, "dependent message was", "dependent messages were")} rejected too.` : "";
  return `Rejected; ${answer.agent_id} is notified.${more}`;
}

export interface Held {
  session_id: string;
  agent_id: string;
  message_id: string;
  /** Digest of the exact message that was shown: the gateway refuses if the message has changed. */
  digest?: string | null;
  note?: string | null;
}

export function approve({ session_id, digest = null, note = null, ...held }: Held, refused?: Refused) {
  return runCommand(
    "Approve",
    () =>
      send("POST /v1/sessions/{session_id}/approve", {
        params: { session_id },
        body: { ...held, digest, note },
      }),
    (answer) => ({ text: approvedText(answer, "unchanged") }),
    refused,
  );
}

export function edit(
  { session_id, digest = null, note = null, ...held }: Held,
  new_content: Record<string, unknown>,
  refused?: Refused,
) {
  return runCommand(
    "Edit",
    () =>
      send("POST /v1/sessions/{session_id}/edit", {
        params: { session_id },
        body: { ...held, digest, note, new_content },
      }),
    (answer) => ({ text: approvedText(answer, "with your edits") }),
    refused,
  );
}

export function reject({ session_id, digest = null, note = null, ...held }: Held, refused?: Refused) {
  return runCommand(
    "Reject",
    () =>
      send("POST /v1/sessions/{session_id}/reject", {
        params: { session_id },
        body: { ...held, digest, note },
      }),
    (answer) => ({ text: rejectedText(answer) }),
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
  return runCommand(
    "Edit message",
    () =>
      send("POST /v1/sessions/{session_id}/rewrite", {
        params: { session_id },
        body: { agent_id, original_message_id, new_content },
      }),
    (answer) => ({
      text: "The held message was rewritten; it is sent on release.",
      undo: undoOf(answer),
    }),
    refused,
  );
}

export function respond(
  decision_id: string,
  option: { option_id: string; label: string },
  note: string | null,
) {
  return runCommand(
    "Answer",
    () =>
      send("POST /v1/decisions/{decision_id}/respond", {
        params: { decision_id },
        body: { selected_option_id: option.option_id, respondent_note: note },
      }),
    (answer) => ({ text: `Answered “${option.label}”; ${answer.agent_id ?? "the agent"} is notified.` }),
  );
}

export function dismiss(decision_id: string) {
  return runCommand(
    "Cancel",
    () => send("POST /v1/decisions/{decision_id}/cancel", { params: { decision_id } }),
    (answer) => ({ text: `The question is withdrawn; ${answer.agent_id ?? "the agent"} is notified.` }),
  );
}

export type Outcome = "ok" | "wrong" | "unsure";

export function review(sequence_number: string, verdict: Outcome, note: string | null) {
  return runCommand(
    "Review",
    () =>
      send("POST /v1/reviews/{sequence_number}", { params: { sequence_number }, body: { verdict, note } }),
    () => ({ text: `Review recorded: ${{ ok: "correct", wrong: "incorrect", unsure: "unsure" }[verdict]}.` }),
  );
}

/**
 * Runs the command and then, whatever the outcome, refetches every query whose path begins with one of these.
 */
export async function andRefetch<T>(paths: string[], doing: Promise<T>): Promise<T> {
  try {
    return await doing;
  } finally {
    refetch(...paths);
  }
}
