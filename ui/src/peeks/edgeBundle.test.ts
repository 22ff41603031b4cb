import { expect, test } from "vitest";
import type { EdgeRecord, NodeRecord } from "~/graph";
import { edgesOf } from "./agentLive";
import { belongs, bundled, endsOf } from "./edgeBundle";

const node = (id: string, cluster_id: string | null, agent_type: string | null): NodeRecord => ({
  id,
  cluster_id,
  agent_type,
  state: "active",
});
const edge = (from: string, to: string, changes: Partial<EdgeRecord> = {}): EdgeRecord => ({
  id: `${from} → ${to}`,
  from,
  to,
  messages: 1,
  rate_per_s: 1,
  status: "Healthy",
  ...changes,
});
const nodes = new Map(
  [node("w1", "eu", "writer"), node("w2", "us", "writer"), node("p1", "eu", "publisher")].map((one) => [
    one.id,
    one,
  ]),
);
const edges = [
  edge("w1", "p1"),
  edge("w2", "p1", { status: "Blocked" }),
  edge("p1", "w1", { rate_per_s: 9 }),
];

test("a bundle is read by its two ends", () => {
  expect(endsOf("cluster:eu ⇒ type:publisher")).toEqual(["cluster:eu", "type:publisher"]);
  expect(endsOf("w1 → p1")).toBeNull();
});

test("a bundle contains the edges of its direction, unhealthy first", () => {
  const found = bundled("type:writer ⇒ type:publisher", edges, (id) => nodes.get(id));
  expect(found.map((one) => one.id)).toEqual(["w2 → p1", "w1 → p1"]);
});

test("clusters, groups and agents are ends alike", () => {
  const of = (id: string) => bundled(id, edges, (agent) => nodes.get(agent)).map((one) => one.id);
  expect(of("cluster:us ⇒ cluster:eu")).toEqual(["w2 → p1"]);
  expect(of("group:eu/publisher ⇒ group:eu/writer")).toEqual(["p1 → w1"]);
  expect(of("w1 ⇒ cluster:eu")).toEqual(["w1 → p1"]);
});

test("an agent without a cluster is in the hull without a name", () => {
  expect(belongs("cluster:", "x", node("x", null, null))).toBe(true);
  expect(belongs("cluster:eu", "x", node("x", null, null))).toBe(false);
});

test("an agent's edges are split by direction", () => {
  const around = edgesOf(edges, "p1");
  expect(around.from.map((one) => one.id)).toEqual(["p1 → w1"]);
  expect(around.into.map((one) => one.id)).toEqual(["w2 → p1", "w1 → p1"]);
});
