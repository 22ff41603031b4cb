// Item names and neighbours in the inbox. The order is the gateway's: nearest deadline, then risk, then age.
import type { WaitingItem } from "~/protocol/openapi";

type Named = Pick<WaitingItem, "kind" | "id">;

export function nameOf({ kind, id }: Named): string {
  return `${kind}:${id}`;
}

export function shownItem<T extends Named>(items: readonly T[], kind: string | undefined): T[] {
  return kind ? items.filter((item) => item.kind === kind) : [...items];
}

/** The neighbour's name; from outside the list its first, past an end null. */
export function neighbour(items: readonly Named[], name: string | undefined, by: 1 | -1): string | null {
  const at = items.findIndex((item) => nameOf(item) === name);
  const to = at === -1 ? items[0] : items[at + by];
  return to ? nameOf(to) : null;
}

/**
 * The item to show: the requested one, else the previously shown one, else the first. `gone` has left the
 * list.
 */
export function stayingItem<T extends Named>(
  all: readonly T[],
  shown: readonly T[],
  wanted: string | undefined,
  before: T | null,
): { item: T | undefined; gone: boolean } {
  const name = wanted ?? (before ? nameOf(before) : undefined);
  const found = name === undefined ? shown[0] : all.find((one) => nameOf(one) === name);
  if (found) return { item: found, gone: false };
  return before && nameOf(before) === name ? { item: before, gone: true } : { item: undefined, gone: false };
}
