// The agents an agent talks with, in and out, unhealthy and busiest first; each links to its edge.
import type { EdgeRecord } from "~/graph";
import { useUrl } from "~/useUrl";
import { ms, rate } from "~/widgets/format";
import classes from "./agent.module.css";
import { edgesOf, useFleet } from "./agentLive";

const SHOWN = 8;

export function EdgeStatus({ status }: { status: EdgeRecord["status"] }) {
  const sign = { Healthy: "✓ healthy", Alert: "! alert", Blocked: "× blocked" }[status];
  return (
    <span className={classes.status} data-status={status}>
      {sign}
    </span>
  );
}

export function latencyOf(edge: EdgeRecord): string {
  if (edge.latency_p95_ms !== null && edge.latency_p95_ms !== undefined)
    return `p95 ${ms(edge.latency_p95_ms)}`;
  return edge.latency_mean_ms ? `after ${ms(edge.latency_mean_ms)}` : "";
}

export function AgentEdges({ id }: { id: string }) {
  const around = useFleet(
    (picture) => edgesOf(picture.of("edge").values() as unknown as Iterable<EdgeRecord>, id),
    id,
  );
  if (!around || around.into.length + around.from.length === 0) return null;
  return (
    <section className={classes.part} aria-label="Edges">
      <h4>Talks with</h4>
      <EdgeList edges={around.from} side="to" title="to" />
      <EdgeList edges={around.into} side="from" title="from" />
    </section>
  );
}

function EdgeList({
  edges,
  side,
  title,
}: {
  edges: readonly EdgeRecord[];
  side: "to" | "from";
  title: string;
}) {
  if (edges.length === 0) return null;
  return (
    <ul className={classes.rows} aria-label={title}>
      {edges.slice(0, SHOWN).map((edge) => (
        <EdgeLine
          key={edge.id}
          edge={edge}
          name={`${side === "to" ? "→" : "←"} ${side === "to" ? (edge.to ?? edge.address ?? "no receiver") : edge.from}`}
        />
      ))}
      {edges.length > SHOWN && (
        <li className={classes.more}>
          and {edges.length - SHOWN} more {title}
        </li>
      )}
    </ul>
  );
}

export function EdgeLine({ edge, name }: { edge: EdgeRecord; name: string }) {
  const [, setUrl] = useUrl();
  return (
    <li>
      <button
        type="button"
        className={classes.link}
        title={edge.reason ?? edge.id}
        onClick={() => setUrl({ peek: `edge:${edge.id}` })}
      >
        {name}
      </button>
      <span className={classes.aside}>
        {rate(edge.rate_per_s)} {latencyOf(edge)} <EdgeStatus status={edge.status} />
      </span>
    </li>
  );
}
