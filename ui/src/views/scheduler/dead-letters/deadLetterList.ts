// Dead letters list: filter, selection, texts. Pure.

import { plural } from "~/plural";
import type { DeadLetterItem } from "~/protocol/openapi";
import type { LetterKind, LetterState } from "../useSchedule";

export const STATES: Record<LetterState, { mark: string; word: string; tone: string }> = {
  dead: { mark: "×", word: "waits", tone: "alert" },
  retried: { mark: "↻", word: "retried", tone: "active" },
  discarded: { mark: "–", word: "discarded", tone: "idle" },
};
export const KINDS: Record<LetterKind, string> = { job: "job", webhook: "webhook" };

export interface DeadLetterFilters {
  q: string;
  state: LetterState;
  kind: LetterKind | null;
}

export function readShown(url: Record<string, string | undefined>): DeadLetterFilters {
  return {
    q: url.q ?? "",
    state: (["retried", "discarded"] as const).find((one) => one === url.state) ?? "dead",
    kind: (["job", "webhook"] as const).find((one) => one === url.kind) ?? null,
  };
}

export function pick(letters: readonly DeadLetterItem[], q: string): DeadLetterItem[] {
  const text = q.trim().toLowerCase();
  if (!text) return [...letters];
  return letters.filter((one) =>
    [one.source_name, one.reason, one.preview, one.letter_id].some((part) =>
      part.toLowerCase().includes(text),
    ),
  );
}

/** The targets of a bulk action: the selected ones that still exist, or all that are shown. */
export function meant(shown: readonly DeadLetterItem[], chosen: ReadonlySet<string>): string[] {
  const ids = shown.map((one) => one.letter_id);
  const picked = ids.filter((id) => chosen.has(id));
  return picked.length > 0 ? picked : ids;
}

export function toggled(chosen: ReadonlySet<string>, id: string): Set<string> {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  return next;
}

export const letters = (n: number) => plural(n, "dead letter");

/** A row has space for the last error; the full reason is in the tooltip and in the detail pane. */
export function shortReason(reason: string): string {
  return reason.replace(/^refused \d+ times?, (?:at last|last reason): /, "");
}
