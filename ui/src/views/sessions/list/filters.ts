// Which sessions are shown and in what order: the URL's words read, rows matched, merged and sorted. Pure.
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

/** Whether a column is first shown with its largest value on top. */
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
// By age rows keep their place while they change; by activity they would dance.
export const FIRST_SORT: SortKey = "age";

export function readFilters(url: Record<string, string | undefined>): Filters {
  const wanted = new Set((url.status ?? "").split(","));
  const [name, way] = (url.sort ?? "").split(":");
  const sort = name && Object.hasOwn(DOWN_FIRST, name) ? (name as SortKey) : FIRST_SORT;
  return {
    q: (url.q ?? "").trim(),
    statuses: STATUS_ORDER.filter((status) => wanted.has(status)),
    severity: SEVERITY_ORDER.find((severity) => severity === url.severity) ?? null,
    stuck: url.stuck === "yes",
    cap: url.cap === "soft" || url.cap === "hard" ? url.cap : null,
    sort,
    down: way === "down" ? true : way === "up" ? false : DOWN_FIRST[sort],
  };
}

/** What the URL's `sort` becomes when a head is pressed: the other way round the second time. */
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

/** The same words the gateway's `q` looks at: goal, agents' names, the beginning of the id. */
export function says(row: SessionRow, q: string): boolean {
  const wanted = q.toLowerCase();
  return (
    row.session_id.toLowerCase().startsWith(wanted) ||
    (row.goal ?? "").toLowerCase().includes(wanted) ||
    row.agent_names.some((name) => name.toLowerCase().includes(wanted))
  );
}

/** All but the text and the status, which the counts of the status filter leave aside. */
function fits(row: SessionRow, filters: Filters): boolean {
  if (filters.severity !== null && row.severity !== filters.severity) return false;
  if (filters.stuck && !row.stuck) return false;
  if (filters.cap === null) return true;
  const reached: CapState = capState(row.cap);
  return filters.cap === "hard" ? reached === "hard" : reached === "hard" || reached === "soft";
}

export interface Picked {
  rows: SessionRow[];
  /** How many of each status there would be, whatever statuses are chosen. */
  counts: Record<SessionStatus, number>;
}

/** Live rows win over loaded ones. `found` are ids the gateway itself matched: it knows all agents, not five. */
export function pick(
  live: readonly SessionRow[],
  loaded: readonly SessionRow[],
  filters: Filters,
  found: ReadonlySet<string>,
): Picked {
  const known = new Set(live.map((row) => row.session_id));
  const all = [...live, ...loaded.filter((row) => !known.has(row.session_id))];
  const counts = Object.fromEntries(STATUS_ORDER.map((status) => [status, 0])) as Picked["counts"];
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

/** What is unknown stands last both ways; equals by the newest begun, so that no two renders differ. */
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
