// A made-up mesh of any size as the topic `fleet` would tell it, and its traffic as deltas ten times a second.
// Only for the bench page: the product shows what the gateway tells.
import type { Change, LiveRecord } from "../src/live/records";

const TYPES = ["planner", "web_researcher", "filings_reader", "data_analyst", "fact_checker", "writer", "code_runner", "publisher"];
const REGIONS = [
  { region: "eu-central-1", name: "Frankfurt", lat: 50.1, lon: 8.7 },
  { region: "us-east-1", name: "N. Virginia", lat: 38.9, lon: -77.4 },
  { region: "asia-southeast1", name: "Singapore", lat: 1.3, lon: 103.7 },
  { region: "westeurope", name: "Netherlands", lat: 52.4, lon: 4.9 },
];
const CLUSTERS = ["aws-eu-central-1", "aws-us-east-1", "gcp-asia-southeast1", "azure-westeurope", "onprem-zrh"];
const FLOW: [number, number][] = [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4], [4, 5], [3, 6], [6, 3], [5, 7], [4, 1], [7, 0]];

/** Park and Miller: the same mesh each time. */
function dice(seed: number): () => number {
  let value = seed;
  return () => {
    value = (value * 48271) % 2147483647;
    return value / 2147483647;
  };
}

export class Mesh {
  readonly nodes: LiveRecord[] = [];
  readonly edges: LiveRecord[] = [];
  private readonly roll = dice(20261116);
  private version = 1;

  constructor(agents: number, edges: number, private readonly wrong = true) {
    const byType: string[][] = TYPES.map(() => []);
    for (let at = 0; at < agents; at++) {
      const type = at % TYPES.length;
      const cluster = CLUSTERS[Math.floor(this.roll() * CLUSTERS.length)] as string;
      const id = `${(TYPES[type] as string).split("_").at(-1)}-${["alpha", "beta", "gamma", "delta"][at % 4]}-${Math.floor(at / 8) + 1}`;
      byType[type]?.push(id);
      this.nodes.push(this.node(id, TYPES[type] as string, cluster, at));
    }
    const made = new Set<string>();
    while (made.size < edges) {
      const [a, b] = FLOW[Math.floor(this.roll() * FLOW.length)] as [number, number];
      const from = this.pick(byType[a] as string[]);
      const to = this.pick(byType[b] as string[]);
      const id = `${from} → ${to}`;
      if (made.has(id) || from === to) {
        if (made.size > agents * agents * 0.1) break;
        continue;
      }
      made.add(id);
      const status = !wrong ? "Healthy" : made.size % 97 === 0 ? "Blocked" : made.size % 61 === 0 ? "Alert" : "Healthy";
      const reason = status === "Healthy" ? null : status === "Blocked" ? `${to}: paused in session ses_7` : "the oldest message has been waiting for more than 30 s";
      const rate = Math.round(10 ** (this.roll() * 3 - 2) * 100) / 100;
      this.edges.push({ kind: "edge", id, version: 1, from, to, address: null, kinds: ["message"], messages: 100, rate_per_s: rate, failures: 0, latency_p50_ms: 20, latency_p95_ms: 90, latency_mean_ms: null, unacknowledged: 0, status, reason });
    }
  }

  private pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.roll() * from.length)] as T;
  }

  private node(id: string, type: string, cluster: string, at: number): LiveRecord {
    const state = this.stateOf(at);
    const alarms = this.alarmsOf(state);
    return { kind: "node", id, version: 1, name: id, agent_type: type, cluster_id: cluster, state, rule: 9, reason: alarms[0]?.text ?? "", liveness: "healthy", ghost: at % 59 === 58, messages: 10, last_seen_at: null, rate_per_s: Math.round(this.roll() ** 3 * 80) / 10, failures_60s: 0, cost_per_min: Math.round(this.roll() * 100) / 1000, alarms };
  }

  private stateOf(at: number): string {
    if (!this.wrong) return at % 3 ? "active" : "idle";
    if (at === 9 || at % 311 === 310) return "alert_entropy";
    if (at === 22 || at % 173 === 172) return "schema_violation";
    if (at === 31 || at % 91 === 90) return "blocked";
    if (at === 44 || at % 127 === 126) return "dead";
    return at % 3 ? "active" : "idle";
  }

  private alarmsOf(state: string) {
    const alarm = (kind: string, severity: string, text: string, session_id: string | null) => ({ kind, severity, text, since: "2026-11-16T05:00:00Z", session_id, detector: null, entropy_score: null });
    if (state === "alert_entropy") return [alarm("loop", "critical", "same failing serp_search 5 times in 40 s", "ses_loop")];
    if (state === "schema_violation") return [alarm("schema_violation", "warning", "its last message broke the schema", null)];
    if (state === "blocked") return [alarm("held", "warning", "2 messages are held (ses_gate)", "ses_gate")];
    if (state === "dead") return [alarm("silent", "critical", "its heartbeat is overdue", null)];
    return [];
  }

  clusters(): LiveRecord[] {
    return CLUSTERS.map((cluster, at) => ({ kind: "cluster", id: `cluster:${cluster}`, version: 1, name: cluster, cluster_id: cluster, agent_type: null, agents: 0, states: {}, state: "active", rate_per_s: 0, cost_per_min: 0, region: REGIONS[at] ?? null }));
  }

  whole(): Change {
    return { whole: true, put: [...this.nodes, ...this.edges, ...this.clusters()], dropped: [] };
  }

  /** What so many messages change: records of their senders; some edges too. */
  delta(messages: number): Change {
    const put = new Map<string, LiveRecord>();
    this.version += 1;
    for (let n = 0; n < messages; n++) {
      const at = Math.floor(this.roll() * this.nodes.length);
      const before = this.nodes[at] as LiveRecord;
      const healthy = before.state === "idle" || before.state === "active";
      const after = { ...before, version: this.version, messages: (before.messages as number) + 1, state: healthy ? "active" : before.state };
      this.nodes[at] = after;
      put.set(after.id, after);
    }
    return { whole: false, put: [...put.values()], dropped: [] };
  }

  /** Rates anew, as every five seconds. */
  rates(): Change {
    this.version += 1;
    const put: LiveRecord[] = [];
    this.edges.forEach((edge, at) => {
      if (at % 4 !== this.version % 4) return;
      const after = { ...edge, version: this.version, rate_per_s: (edge.rate_per_s as number) * (0.5 + this.roll()), messages: (edge.messages as number) + 5 };
      this.edges[at] = after;
      put.push(after);
    });
    return { whole: false, put, dropped: [] };
  }

  fork(): Change {
    this.version += 1;
    const parent = this.nodes.find((one) => one.agent_type === "planner") as LiveRecord;
    const to = this.nodes.filter((one) => one.agent_type === "web_researcher").slice(0, 5).map((one) => one.id);
    return { whole: false, put: [{ kind: "fork", id: String(this.version), version: this.version, agent_id: parent.id, to, children: to.length, session_id: "ses_1", sequence_number: this.version, at: "" }], dropped: [] };
  }

  join(): Change {
    this.version += 1;
    const node = { ...this.node(`writer-new-${this.version}`, "writer", CLUSTERS[0] as string, 1), version: this.version };
    this.nodes.push(node);
    return { whole: false, put: [node], dropped: [] };
  }
}
