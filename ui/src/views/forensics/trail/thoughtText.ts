// Thought sessions and their records for display: session state, records by task, content of a record. Pure.

import { plural } from "~/plural";
import type { ThoughtItem, ThoughtSessionItem } from "~/protocol/openapi";
import { inert } from "~/widgets/inert";

export const TYPES: Record<string, { mark: string; word: string }> = {
  plan: { mark: "◇", word: "plan" },
  analysis: { mark: "○", word: "analysis" },
  decision: { mark: "◆", word: "decision" },
  reflection: { mark: "↺", word: "reflection" },
};

export function stateOf(
  session: Pick<ThoughtSessionItem, "sealed_at" | "ended_at" | "verified_records" | "records">,
) {
  if (session.sealed_at) return { tone: "good", mark: "◆", word: "sealed" };
  if (session.ended_at) return { tone: "idle", mark: "·", word: "ended, not sealed" };
  if (session.verified_records !== null && session.records - session.verified_records <= 1)
    return { tone: "active", mark: "▸", word: "verified, open" };
  return { tone: "active", mark: "▸", word: "open" };
}

/** The next missing step before a session can be sealed; null if none. */
export function beforeSeal(
  session: Pick<ThoughtSessionItem, "records" | "verified_records" | "open_tasks">,
  last: Pick<ThoughtItem, "type"> | undefined,
): string | null {
  if (session.records === 0) return "An empty session cannot be sealed: its agent writes records first.";
  const since = session.records - (session.verified_records ?? 0);
  if (session.verified_records === null || since > 1)
    return "First verify the chain on the gateway; then the agent writes its closing reflection.";
  if (last && last.type !== "reflection") return "The agent must close with a reflection first.";
  if (session.open_tasks > 0) return `${plural(session.open_tasks, "task is", "tasks are")} still open.`;
  return null;
}

export interface Task {
  task_id: string;
  items: ThoughtItem[];
}

/** In the order in which tasks first appear. */
export function byTask(items: readonly ThoughtItem[]): Task[] {
  const tasks = new Map<string, ThoughtItem[]>();
  for (const item of items) tasks.set(item.task_id, [...(tasks.get(item.task_id) ?? []), item]);
  return [...tasks].map(([task_id, own]) => ({ task_id, items: own }));
}

const NAMED: Record<string, string> = {
  trajectory: "",
  observation: "",
  choice: "chose",
  alternatives: "over",
  why: "because",
  happened: "happened",
  proved: "proved",
  uncertain: "uncertain",
};

/** The content of a record as pairs of label and text, known labels first. */
export function wordsOf(content: Record<string, unknown> | null): [name: string, text: string][] {
  if (content === null) return [];
  const names = [
    ...Object.keys(NAMED).filter((name) => name in content),
    ...Object.keys(content).filter((name) => !(name in NAMED)),
  ];
  return names.map((name) => [NAMED[name] ?? inert(name.replaceAll("_", " ")), textOf(content[name])]);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return inert(value);
  if (Array.isArray(value)) return value.map(textOf).join("; ");
  return inert(JSON.stringify(value));
}
