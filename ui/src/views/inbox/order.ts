// Names and neighbours in the inbox. The order is the gateway's: nearest deadline, then risk, then age.
import type { WaitingItem } from "~/protocol/openapi";

type Named = Pick<WaitingItem, "kind" | "id">;

export function nameOf({ kind, id }: Named): string {
  return `${kind}:${id}`;
}

export function shownOf<T extends Named>(items: readonly T[], kind: string | undefined): T[] {
  return kind ? items.filter((item) => item.kind === kind) : [...items];
}

/** The neighbour's name; from outside the list its first, past an end nothing. */
export function beside(items: readonly Named[], name: string | undefined, by: 1 | -1): string | null {
  const at = items.findIndex((item) => nameOf(item) === name);
  const to = at === -1 ? items[0] : items[at + by];
  return to ? nameOf(to) : null;
}
