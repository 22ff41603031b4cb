// Filtering and sorting of the sessions list: URL values parsed, rows matched, merged and sorted. Pure.
import {
  type CapState,
  capState,
  SEVERITY_ORDER,
  type SessionRow,
  type SessionStatus,
  STATUS_ORDER,
} from "./session";

export type SortKey =
  | "status"
  | "goal"
  | "agents"
  | "steps"
  | "entropy"
  | "confidence"
  | "cost"
  | "cap"
  | "age"
  | "activity";

export interface Filters {
  q: string;
  statuses: SessionStatus[];
  severity: SessionRow["severity"] | null;
  stuck: boolean;
  cap: "soft" | "hard" | null;
  sort: SortKey;
  down: boolean;
}

/** Whether a column sorts largest first by default. */
const DOWN_FIRST: Record<SortKey, boolean> = {
  status: false,
  goal: false,
  agents: true,
  steps: true,
  entropy: false,
  confidence: false,
  cost: true,
  cap: true,
  age: false,
  activity: true,
};
// By age, rows keep their position while they change; by activity they would jump.
export const FIRST_SORT: SortKey = "age";

export function readFilters(url: Record<string, string | undefined>): Filters {
  const wantedText = new Set((url.status ?? "").split(","));
  const [name, way] = (url.sort ?? "").split(":");
  const sort = name && Object.hasOwn(DOWN_FIRST, name) ? (name as SortKey) : FIRST_SORT;
  return {
    q: (url.q ?? "").trim(),
    statuses: STATUS_ORDER.filter((status) => wantedText.has(status)),
    severity: SEVERITY_ORDER.find((severity) => severity === url.severity) ?? null,
    stuck: url.stuck === "yes",
    cap: url.cap === "soft" || url.cap === "hard" ? url.cap : null,
    sort,
    down: way === "down" ? true : way === "up" ? false : DOWN_FIRST[sort],
  };
}

/** The URL's `sort` after a click on a column: reversed the second time. */
export function pressedSort(now: Pick<Filters, "sort" | "down">, column: SortKey): string {
  const down = now.sort === column ? !now.down : DOWN_FIRST[column];
  return `${column}:${down ? "down" : "up"}`;
}

export function toggled(statuses: SessionStatus[], one: SessionStatus): string {
  const next = statuses.includes(one) ? statuses.filter((each) => each !== one) : [...statuses, one];
  return STATUS_ORDER.filter((status) => next.includes(status)).join(",");
}

export function isFiltered(filters: Filters): boolean {
  const { q, statuses, severity, stuck, cap } = filters;
  return q !== "" || statuses.length > 0 || severity !== null || stuck || cap !== null;
}

/** The same fields as the gateway's `q`: goal, agent names, the beginning of the id. */
export function says(row: SessionRow, q: string): boolean {
  const wantedText = q.toLowerCase();
  return (
    row.session_id.toLowerCase().startsWith(wantedText) ||
    (row.goal ?? "").toLowerCase().includes(wantedText) ||
    row.agent_names.some((name) => name.toLowerCase().includes(wantedText))
  );
}

/** Every filter except text and status, which the counts of the status filter ignore. */
function fits(row: SessionRow, filters: Filters): boolean {
  if (filters.severity !== null && row.severity !== filters.severity) return false;
  if (filters.stuck && !row.stuck) return false;
  if (filters.cap === null) return true;
  const reached: CapState = capState(row.cap);
  return filters.cap === "hard" ? reached === "hard" : reached === "hard" || reached === "soft";
}

export interface FilteredSessions {
  rows: SessionRow[];
  /** The number of each status, before the status filter. */
  counts: Record<SessionStatus, number>;
}

/** Live rows override loaded ones. `found` are ids the gateway matched: it knows all agents, not five. */
export function pick(
  live: readonly SessionRow[],
  loaded: readonly SessionRow[],
  filters: Filters,
  found: ReadonlySet<string>,
): FilteredSessions {
  const known = new Set(live.map((row) => row.session_id));
  const all = [...live, ...loaded.filter((row) => !known.has(row.session_id))];
  const counts = Object.fromEntries(STATUS_ORDER.map((status) => [status, 0])) as FilteredSessions["counts"];
  const rows: SessionRow[] = [];
  for (const row of all) {
    if (filters.q && !found.has(row.session_id) && !says(row, filters.q)) continue;
    if (!fits(row, filters)) continue;
    counts[row.status] += 1;
    if (filters.statuses.length === 0 || filters.statuses.includes(row.status)) rows.push(row);
  }
  return { rows: sorted(rows, filters), counts };
}

type Value = number | string | null;

const VALUE: Record<SortKey, (row: SessionRow) => Value> = {
  status: (row) => STATUS_ORDER.indexOf(row.status),
  goal: (row) => row.goal?.toLowerCase() ?? null,
  agents: (row) => row.agents_count,
  steps: (row) => row.messages,
  entropy: (row) => row.entropy_score,
  confidence: (row) => row.confidence,
  cost: (row) => row.cost,
  cap: (row) => row.cap?.share ?? null,
  age: (row) => -row.first_sequence_number,
  activity: (row) => row.last_sequence_number,
};

/** Unknown values last both ways; ties by newest start, so that renders are stable. */
export function sorted(rows: SessionRow[], { sort, down }: Pick<Filters, "sort" | "down">): SessionRow[] {
  const value = VALUE[sort];
  return rows.sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (one !== other) {
      if (one === null) return 1;
      if (other === null) return -1;
      return (one < other ? -1 : 1) * (down ? -1 : 1);
    }
    return b.first_sequence_number - a.first_sequence_number;
  });
}
