// A conflict prepared for display: agents, start time, and what a resolution would do. Pure.
import type { ConflictItem, Holder, SideItem } from "~/protocol/openapi";

export const keyOf = ({ scope, subject }: ConflictItem) => `${scope} ${subject}`;

/** A conflict starts when the second value is stated. */
export function sinceWhen({ sides }: ConflictItem): string | null {
  const firsts = sides.flatMap((side) => {
    const times = side.holders.map((one) => one.at).sort();
    return times[0] === undefined ? [] : [times[0]];
  });
  return firsts.sort()[1] ?? firsts[0] ?? null;
}

export function agentsOf(holders: readonly Holder[]): string[] {
  return [...new Set(holders.map((one) => one.agent_id ?? "unknown"))];
}

/** The agents a resolution to `value` would notify: all that hold another. */
export function agentsToCorrect(conflict: ConflictItem, value: string): string[] {
  const same = (side: SideItem) => side.value.trim().toLowerCase() === value.trim().toLowerCase();
  return agentsOf(conflict.sides.filter((side) => !same(side)).flatMap((side) => side.holders));
}

/** Open ones first, then the newest. */
export function ordered(conflicts: readonly ConflictItem[]): ConflictItem[] {
  return [...conflicts].sort(
    (a, b) =>
      Number(a.reconciled !== null) - Number(b.reconciled !== null) ||
      (sinceWhen(b) ?? "").localeCompare(sinceWhen(a) ?? ""),
  );
}

/** "session:0191…" → a readable scope. */
export function place(scope: string): { kind: string; id: string } {
  const colon = scope.indexOf(":");
  return { kind: scope.slice(0, colon), id: scope.slice(colon + 1) };
}
