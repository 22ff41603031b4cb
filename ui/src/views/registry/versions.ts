// The version registry of one agent type: N, N-1, retired, and unregistered versions in use. A change sends
// the whole new list (`PUT /v1/versions`); nothing is left out by accident. Pure.
import type { AgentItem, VersionItem, VersionRow } from "~/protocol/openapi";

export type Status = VersionItem["status"];
export const STATUSES: Record<Status, { mark: string; word: string; tone: string; means: string }> = {
  current: { mark: "N", word: "current", tone: "good", means: "accepted: the current version" },
  previous: { mark: "N-1", word: "previous", tone: "active", means: "accepted: the previous version" },
  retired: {
    mark: "×",
    word: "retired",
    tone: "dead",
    means: "refused: messages of it are schema violations",
  },
  unknown: {
    mark: "?",
    word: "not registered",
    tone: "blocked",
    means: "accepted with a warning in each response",
  },
};
const ORDER: readonly Status[] = ["current", "previous", "unknown", "retired"];
const SEMVER =
  /^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z.-]+)?$/;

export interface Version extends Pick<VersionItem, "version" | "status" | "fields"> {
  updated_at: string | null;
  updated_by: string | null;
  /** Instances that use it. */
  instances: number;
}

/** A leading `v` and build metadata are ignored. */
export function same(a: string, b: string): boolean {
  const bare = (text: string) => text.replace(/^v/, "").replace(/\+.*$/, "");
  return bare(a) === bare(b);
}

/** Registered and unregistered versions, N first. */
export function versionsOf(
  items: readonly VersionItem[],
  agents: readonly Pick<AgentItem, "capability_version" | "liveness">[],
): Version[] {
  const spoken = agents
    .filter((one) => one.liveness !== "evicted")
    .flatMap((one) => one.capability_version ?? []);
  const known = items.map(
    (item): Version => ({
      version: item.version,
      status: item.status,
      fields: item.fields,
      updated_at: item.updated_at ?? null,
      updated_by: item.updated_by ?? null,
      instances: spoken.filter((one) => same(one, item.version)).length,
    }),
  );
  for (const version of new Set(spoken)) {
    if (known.some((one) => same(one.version, version))) continue;
    const instances = spoken.filter((one) => same(one, version)).length;
    known.push({ version, status: "unknown", fields: null, updated_at: null, updated_by: null, instances });
  }
  return known.sort(
    (a, b) =>
      ORDER.indexOf(a.status) - ORDER.indexOf(b.status) ||
      b.version.localeCompare(a.version, "en", { numeric: true }),
  );
}

/** The list the user saw, for the gateway to compare (optimistic concurrency). */
export function seen(versions: readonly Version[]): Record<string, VersionRow["status"]> {
  return Object.fromEntries(registered(versions).map((one) => [one.version, one.status]));
}

export function registered(versions: readonly Version[]): VersionRow[] {
  return versions.flatMap(({ version, status, fields }) =>
    status === "unknown" || (status as string) === "seen" ? [] : [{ version, status, fields }],
  );
}

export function retire(versions: readonly Version[], version: string): VersionRow[] {
  const rows = registered(versions);
  if (!rows.some((row) => row.version === version)) return [...rows, { version, status: "retired" }];
  return rows.map((row) => (row.version === version ? { ...row, status: "retired" } : row));
}

/** It becomes N, the present N becomes N-1, and the present N-1 is retired. */
export function makeCurrent(versions: readonly Version[], version: string): VersionRow[] {
  const rows = registered(versions).filter((row) => !same(row.version, version));
  const fields = versions.find((one) => same(one.version, version))?.fields ?? null;
  const stepped = rows.map(
    (row): VersionRow =>
      row.status === "current"
        ? { ...row, status: "previous" }
        : row.status === "previous"
          ? { ...row, status: "retired" }
          : row,
  );
  // Without an N nothing is replaced: N-1 stays.
  const pushed = rows.some((row) => row.status === "current") ? stepped : rows;
  return [{ version, status: "current", fields }, ...pushed];
}

/** It is accepted alongside N; the present N-1 is retired. */
export function makePrevious(versions: readonly Version[], version: string): VersionRow[] {
  const rows = registered(versions).filter((row) => !same(row.version, version));
  const fields = versions.find((one) => same(one.version, version))?.fields ?? null;
  return [
    { version, status: "previous", fields },
    ...rows.map((row): VersionRow => (row.status === "previous" ? { ...row, status: "retired" } : row)),
  ];
}

export function faultOf(text: string, versions: readonly Version[]): string | null {
  const typed = text.trim();
  if (typed === "") return "Enter a version, such as v2.1.0.";
  if (!SEMVER.test(typed)) return "A version has three numbers, with an optional leading v: v2.1.0.";
  const known = versions.find((one) => same(one.version, typed));
  return known && known.status === "current" ? `${known.version} is already the current version.` : null;
}

/** The versions a new list refuses that were accepted before, with their instance counts. */
export function refusedBy(
  next: readonly VersionRow[],
  versions: readonly Version[],
): { version: string; instances: number }[] {
  return next
    .filter((row) => row.status === "retired")
    .flatMap((row) => {
      const before = versions.find((one) => same(one.version, row.version));
      return before && before.status !== "retired"
        ? [{ version: row.version, instances: before.instances }]
        : [];
    });
}

export function refusedSentence(refused: readonly { version: string; instances: number }[]): string {
  if (refused.length === 0) return "No accepted version will be refused.";
  return refused
    .map(({ version, instances }) => {
      const who =
        instances === 0
          ? "no instance uses it"
          : instances === 1
            ? "1 instance uses it now"
            : `${instances} instances use it now`;
      return `From the next message on, ${version} is refused; ${who}.`;
    })
    .join(" ");
}
