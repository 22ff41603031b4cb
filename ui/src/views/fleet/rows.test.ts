import { expect, test } from "vitest";
import { type Alarm, COLUMNS, type NodeRecord, ordered, type Row, rowOf, worstAlarm } from "./rows";

const nodeRecord: NodeRecord = {
  id: "writer-1",
  agent_type: "writer",
  cluster_id: null,
  state: "active",
  liveness: "healthy",
  last_seen_at: "2026-02-16T14:32:00Z",
  rate_per_s: 2,
};
const row = (changes: Partial<Row>): Row => ({ ...rowOf(nodeRecord), ...changes });
const alarm = (kind: string, severity: Alarm["severity"]): Alarm => ({
  kind,
  severity,
  text: null,
  since: null,
  session_id: null,
  detector: null,
  entropy_score: null,
});

test("a compact record leaves unknown figures unknown, never zero", () => {
  const made = rowOf(nodeRecord);
  expect(made.cost).toBeUndefined();
  expect(made.failures).toBeUndefined();
  expect(made.name).toBe("writer-1");
  expect(made.cluster).toBe("");
});

test("what the live record lacks comes from the full response", () => {
  const fullNode = { name: "Writer One", cost_per_min: 0.2, failures_60s: 3, reason: "sent" } as never;
  expect(rowOf(nodeRecord, fullNode)).toMatchObject({ name: "Writer One", cost: 0.2, failures: 3 });
  expect(rowOf({ ...nodeRecord, cost_per_min: 0.5 }, fullNode).cost).toBe(0.5);
});

test("by state the loop comes first and the idle last", () => {
  const rows = (["idle", "dead", "alert_entropy", "active"] as const).map((state) =>
    row({ id: state, name: state, state }),
  );
  expect(ordered(rows, { by: "state", down: false }).map((one) => one.state)).toEqual([
    "alert_entropy",
    "dead",
    "active",
    "idle",
  ]);
});

test("ties stand in name's order whichever way round", () => {
  const rows = [row({ name: "b", rate: 1 }), row({ name: "a", rate: 1 }), row({ name: "c", rate: 9 })];
  expect(ordered(rows, { by: "rate", down: true }).map((one) => one.name)).toEqual(["c", "a", "b"]);
  expect(ordered(rows, { by: "rate", down: false }).map((one) => one.name)).toEqual(["a", "b", "c"]);
});

test("sorting leaves the array it was given alone", () => {
  const rows = [row({ name: "b" }), row({ name: "a" })];
  ordered(rows, { by: "name", down: false });
  expect(rows.map((one) => one.name)).toEqual(["b", "a"]);
});

test("every column can be sorted by", () => {
  const rows = [row({ name: "b", cost: undefined }), row({ name: "a", seen: null })];
  for (const column of COLUMNS) expect(ordered(rows, { by: column.id, down: true })).toHaveLength(2);
});

test("a loop is acted on before anything else", () => {
  const found = worstAlarm([
    alarm("held", "warning"),
    alarm("silent", "critical"),
    alarm("loop", "critical"),
  ]);
  expect(found?.kind).toBe("loop");
  expect(worstAlarm([])).toBeNull();
});
