// Texts for jobs and runs: target, schedule, states. Pure.
import type { JobItem, RunItem } from "~/protocol/openapi";
import { span } from "~/widgets/format";

interface Sign {
  mark: string;
  word: string;
  tone: string;
}
export const STATES: Record<JobItem["state"], Sign> = {
  active: { mark: "▸", word: "active", tone: "active" },
  paused: { mark: "‖", word: "paused", tone: "blocked" },
  done: { mark: "✓", word: "done", tone: "idle" },
};
export const RUNS: Record<RunItem["state"], Sign> = {
  sent: { mark: "✓", word: "sent", tone: "good" },
  held: { mark: "‖", word: "held", tone: "blocked" },
  due: { mark: "▸", word: "due", tone: "active" },
  queued: { mark: "…", word: "queued", tone: "blocked" },
  refused: { mark: "!", word: "refused, retrying", tone: "violation" },
  dead: { mark: "×", word: "failed", tone: "alert" },
  skipped: { mark: "○", word: "skipped", tone: "violation" },
};

export function targetText({ kind, name }: JobItem["target"]): string {
  return kind === "agent" ? name : kind === "capability" ? `type:${name}` : `cluster:${name}`;
}

/** `At 09:00 on Monday through Friday, Europe/Berlin`; one moment as such. */
export function scheduleText(job: JobItem): string {
  if (job.kind === "once") return "once";
  const words = (job.explained ?? job.cron ?? "").replace(/^At /, "at ").replace(/^Every /, "every ");
  return job.zone === "UTC" ? words : `${words}, ${job.zone}`;
}

/** `in 4 min`, `now`, `12 s late`. */
export function until(at: string, now: number): string {
  const left = Date.parse(at) - now;
  if (left >= 1_000) return `in ${span(left)}`;
  return left > -3_000 ? "now" : `${span(-left)} late`;
}

const WHY: readonly [RegExp, string][] = [
  [/^denied by rule (\S+)/, "denied by a policy rule"],
  [/^policy_denied/, "denied by a policy rule"],
  [/budget/, "budget cap reached"],
  [/kill_switch/, "kill switch engaged"],
];

/** The gateway's reason, prefixed with a plain phrase if there is one. */
export function reasonText(reason: string | null): string {
  if (!reason) return "";
  const found = WHY.find(([pattern]) => pattern.test(reason));
  return found ? `${found[1]} (${reason})` : reason;
}

export interface JobFilters {
  q: string;
  state: "all" | JobItem["state"];
  reminders: boolean;
}

export function readShown(url: Record<string, string | undefined>): JobFilters {
  const state = (["active", "paused", "done"] as const).find((one) => one === url.state) ?? "all";
  return { q: url.q ?? "", state, reminders: url.reminders === "1" };
}

/** Failing ones first, then by next run; paused and done last. */
export function pick(jobs: readonly JobItem[], { q, state }: Pick<JobFilters, "q" | "state">): JobItem[] {
  const text = q.trim().toLowerCase();
  const fits = (job: JobItem) =>
    (state === "all" || job.state === state) &&
    (!text ||
      [job.name, targetText(job.target), job.intent, job.cron, job.asked_by, job.explained].some((one) =>
        one?.toLowerCase().includes(text),
      ));
  const rank = (job: JobItem) => (job.failures > 0 ? 0 : job.next_at ? 1 : job.state === "paused" ? 2 : 3);
  return jobs
    .filter(fits)
    .sort(
      (a, b) =>
        rank(a) - rank(b) || (a.next_at ?? "").localeCompare(b.next_at ?? "") || a.name.localeCompare(b.name),
    );
}
