// Scheduler commands: create, change, run, pause and remove jobs; retry or discard dead letters. A change
// carries the version the user saw (`was`, optimistic concurrency).
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { plural } from "~/plural";
import type { ChangeJobBody, JobBody, JobItem, LettersDone } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";
import { showToast } from "./toasts";

const JOBS = ["/v1/jobs", "/v1/scheduler"];
const LETTERS = ["/v1/dead-letters", "/v1/scheduler", "/v1/jobs"];
const jobs = () => refetch(...JOBS);
const letters = () => refetch(...LETTERS);

interface Named {
  job_id: string;
  name: string;
}

export function createJob(body: JobBody, refused?: Refused) {
  return runCommand(
    "Creating the job",
    () => send("POST /v1/jobs", { body }),
    (job) => ({ text: `${job.name} is scheduled.` }),
    refused,
  ).finally(jobs);
}

/** `before` can be restored, unless the job was changed again in the meantime. */
export function changeJob(
  job_id: string,
  body: ChangeJobBody,
  was: string,
  before: ChangeJobBody | null,
  refused?: Refused,
): Promise<JobItem | null> {
  return runCommand(
    "Changing the job",
    () => send("PUT /v1/jobs/{job_id}", { params: { job_id }, body: { ...body, was } }),
    (job) => ({
      text: `${job.name} is changed; the new schedule applies now.`,
      undo: before ? () => changeJob(job_id, before, job.updated_at, null) : undefined,
    }),
    refused,
  ).finally(jobs);
}

export function runJob({ job_id, name }: Named) {
  return runCommand(
    "Running it",
    () => send("POST /v1/jobs/{job_id}/run", { params: { job_id } }),
    () => ({ text: `${name} runs once now, off schedule.` }),
  ).finally(jobs);
}

/** After a clock jump: a person confirms that the clock is right, and schedules resume from the present. */
export function resumeFromNow() {
  return runCommand(
    "Resuming schedules",
    () => send("POST /v1/scheduler/from-now"),
    ({ jobs: count }) => ({
      text: `${plural(count, "schedule")} resumed from now.`,
    }),
  ).finally(jobs);
}

export function pauseJob({ job_id, name }: Named): Promise<JobItem | null> {
  return runCommand(
    "Pausing it",
    () => send("POST /v1/jobs/{job_id}/pause", { params: { job_id } }),
    () => ({
      text: `${name} is paused; it does not run until resumed.`,
      undo: () => resumeJob({ job_id, name }),
    }),
  ).finally(jobs);
}

export function resumeJob({ job_id, name }: Named): Promise<JobItem | null> {
  return runCommand(
    "Resuming it",
    () => send("POST /v1/jobs/{job_id}/resume", { params: { job_id } }),
    () => ({
      text: `${name} is resumed.`,
      undo: () => pauseJob({ job_id, name }),
    }),
  ).finally(jobs);
}

export function removeJob({ job_id, name }: Named) {
  return runCommand(
    "Removing it",
    () => send("DELETE /v1/jobs/{job_id}", { params: { job_id } }),
    () => ({ text: `${name} is removed. Its run history is kept.` }),
  ).finally(jobs);
}

export type LetterAct = "retry" | "discard";
const DONE = { retry: "retried", discard: "discarded" } as const;

export function settleDeadLetter(letter_id: string, name: string, does: LetterAct) {
  return runCommand(
    does === "retry" ? "Retrying" : "Discarding",
    () => send(`POST /v1/dead-letters/{letter_id}/${does}`, { params: { letter_id } }),
    () => ({
      text:
        does === "retry"
          ? `The dead letter of ${name} is retried; if it fails again, there is a new dead letter.`
          : `The dead letter of ${name} is discarded. It stays in the audit trail.`,
    }),
  ).finally(letters);
}

/** The gateway's batch limit. */
export const MAX_BATCH = 100;

/**
 * Many dead letters, batch by batch; `onProgress` receives how many are done. Each is handled on its own: one
 * that is refused does not hold up the rest.
 */
export async function settleDeadLetters(
  ids: readonly string[],
  does: LetterAct,
  onProgress: (done: number) => void,
): Promise<LettersDone | null> {
  const all: LettersDone = { done: [], refused: [], more: false };
  const answer = await runCommand(
    does === "retry" ? "Retrying" : "Discarding",
    async () => {
      for (let n = 0; n < ids.length; n += MAX_BATCH) {
        const part = await send(`POST /v1/dead-letters/${does}`, {
          body: { ids: ids.slice(n, n + MAX_BATCH) },
        });
        all.done.push(...part.done);
        all.refused.push(...part.refused);
        onProgress(all.done.length + all.refused.length);
      }
      return all;
    },
    () => ({ text: resultOf(all, ids.length, does) }),
  ).finally(letters);
  // Interrupted half way: what was done before stays done.
  if (answer === null && all.done.length > 0)
    showToast({ tone: "plain", text: resultOf(all, ids.length, does) });
  return answer;
}

export function resultOf({ done, refused }: LettersDone, asked: number, does: LetterAct): string {
  const many = (n: number) => plural(n, "dead letter");
  const why = [...new Set(refused.map((one) => one.reason))].join(", ");
  const not = refused.length > 0 ? ` ${many(refused.length)} refused: ${why}.` : "";
  const left = asked - done.length - refused.length;
  return `${done.length} of ${many(asked)} ${DONE[does]}.${not}${left > 0 ? ` ${many(left)} not processed yet.` : ""}`;
}
