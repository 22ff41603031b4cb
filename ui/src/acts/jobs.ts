// What an operator does to the schedule: jobs made, changed, run, stopped, removed; dead letters tried again or
// let go. A change says what it saw (`was`), so that whoever was first wins.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { ChangeJobBody, JobBody, JobItem, LettersDone } from "~/protocol/openapi";
import { act, type Refused } from "./acts";
import { say } from "./toasts";

const JOBS = ["/v1/jobs", "/v1/scheduler"];
const LETTERS = ["/v1/dead-letters", "/v1/scheduler", "/v1/jobs"];
const jobs = () => askAgain(...JOBS);
const letters = () => askAgain(...LETTERS);

interface Named {
  job_id: string;
  name: string;
}

export function createJob(body: JobBody, refused?: Refused) {
  return act(
    "Making the job",
    () => send("POST /v1/jobs", { body }),
    (job) => ({ text: `${job.name} is on the schedule.` }),
    refused,
  ).finally(jobs);
}

/** `before` can be put back, unless somebody changed it again. */
export function changeJob(
  job_id: string,
  body: ChangeJobBody,
  was: string,
  before: ChangeJobBody | null,
  refused?: Refused,
): Promise<JobItem | null> {
  return act(
    "Changing the job",
    () => send("PUT /v1/jobs/{job_id}", { params: { job_id }, body: { ...body, was } }),
    (job) => ({
      text: `${job.name} is changed, and fires by its new times from now on.`,
      undo: before ? () => changeJob(job_id, before, job.updated_at, null) : undefined,
    }),
    refused,
  ).finally(jobs);
}

export function runJob({ job_id, name }: Named) {
  return act(
    "Running it",
    () => send("POST /v1/jobs/{job_id}/run", { params: { job_id } }),
    () => ({ text: `${name} runs once now, beside its times.` }),
  ).finally(jobs);
}

/** After a wrong clock: a person says that it is right, and schedules go on from the present. */
export function goOnFromNow() {
  return act(
    "Letting schedules go on",
    () => send("POST /v1/scheduler/from-now"),
    ({ jobs: count }) => ({
      text: `${count === 1 ? "1 schedule goes" : `${count} schedules go`} on from now.`,
    }),
  ).finally(jobs);
}

export function pauseJob({ job_id, name }: Named): Promise<JobItem | null> {
  return act(
    "Pausing it",
    () => send("POST /v1/jobs/{job_id}/pause", { params: { job_id } }),
    () => ({
      text: `${name} fires no more until it is resumed.`,
      undo: () => resumeJob({ job_id, name }),
    }),
  ).finally(jobs);
}

export function resumeJob({ job_id, name }: Named): Promise<JobItem | null> {
  return act(
    "Resuming it",
    () => send("POST /v1/jobs/{job_id}/resume", { params: { job_id } }),
    () => ({
      text: `${name} fires again, from now on.`,
      undo: () => pauseJob({ job_id, name }),
    }),
  ).finally(jobs);
}

export function removeJob({ job_id, name }: Named) {
  return act(
    "Removing it",
    () => send("DELETE /v1/jobs/{job_id}", { params: { job_id } }),
    () => ({ text: `${name} is off the schedule. Its runs stay on record.` }),
  ).finally(jobs);
}

export type LetterAct = "retry" | "discard";
const DONE = { retry: "tried once more", discard: "let go" } as const;

export function settleLetter(letter_id: string, name: string, does: LetterAct) {
  return act(
    does === "retry" ? "Trying it again" : "Discarding it",
    () => send(`POST /v1/dead-letters/{letter_id}/${does}`, { params: { letter_id } }),
    () => ({
      text:
        does === "retry"
          ? `The letter of ${name} is tried once more; if that fails there is a new letter.`
          : `The letter of ${name} is let go. The record keeps it.`,
    }),
  ).finally(letters);
}

/** The gateway takes so many at once. */
export const AT_ONCE = 100;

/** Many letters, portion by portion; `told` hears how many are done. Each for itself: one that cannot be does not hold up the rest. */
export async function settleLetters(
  ids: readonly string[],
  does: LetterAct,
  told: (done: number) => void,
): Promise<LettersDone | null> {
  const all: LettersDone = { done: [], refused: [], more: false };
  const answer = await act(
    does === "retry" ? "Trying them again" : "Discarding them",
    async () => {
      for (let n = 0; n < ids.length; n += AT_ONCE) {
        const part = await send(`POST /v1/dead-letters/${does}`, {
          body: { ids: ids.slice(n, n + AT_ONCE) },
        });
        all.done.push(...part.done);
        all.refused.push(...part.refused);
        told(all.done.length + all.refused.length);
      }
      return all;
    },
    () => ({ text: resultOf(all, ids.length, does) }),
  ).finally(letters);
  // Broken off half way: what was done before is done.
  if (answer === null && all.done.length > 0) say({ tone: "plain", text: resultOf(all, ids.length, does) });
  return answer;
}

export function resultOf({ done, refused }: LettersDone, asked: number, does: LetterAct): string {
  const many = (n: number) => (n === 1 ? "1 letter" : `${n} letters`);
  const why = [...new Set(refused.map((one) => one.reason))].join(", ");
  const not = refused.length > 0 ? ` ${many(refused.length)} could not be: ${why}.` : "";
  const left = asked - done.length - refused.length;
  return `${many(done.length)} of ${asked} ${DONE[does]}.${not}${left > 0 ? ` ${many(left)} not asked yet.` : ""}`;
}
