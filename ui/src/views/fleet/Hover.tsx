// A short tooltip at the pointer. For the eye only: the panel and the list have the full details.
import { Fragment, type ReactNode } from "react";
import type { Hit, Topology } from "~/graph";
import { money, ms, type NodeState, rate, STATE_SIGNS } from "~/widgets/format";
import { Mark } from "~/widgets/Mark";
import classes from "./Hover.module.css";

export function Hover({ map, hit, within }: { map: Topology; hit: Hit; within: HTMLElement | null }) {
  const lines = tooltipOf(map, hit);
  if (!lines || !within) return null;
  const { clientWidth, clientHeight } = within;
  const style = {
    left: hit.x > clientWidth - 260 ? undefined : hit.x + 14,
    right: hit.x > clientWidth - 260 ? clientWidth - hit.x + 14 : undefined,
    top: hit.y > clientHeight - 120 ? undefined : hit.y + 14,
    bottom: hit.y > clientHeight - 120 ? clientHeight - hit.y + 14 : undefined,
  };
  return (
    <div className={classes.hover} style={style} aria-hidden>
      {lines}
    </div>
  );
}

function tooltipOf(map: Topology, hit: Hit): ReactNode {
  if (hit.kind === "node" || hit.kind === "alarm") {
    const node = map.node(hit.id);
    if (!node) return null;
    const facts = [node.agent_type, node.cluster_id, rate(node.rate_per_s ?? 0)];
    if (node.cost_per_min) facts.push(`${money(node.cost_per_min)}/min`);
    return (
      <>
        <strong>{node.name ?? node.id}</strong>
        <span>
          <Mark state={node.state} /> {node.reason ?? ""}
        </span>
        {node.intent && <em>{node.intent}</em>}
        <small>{facts.filter(Boolean).join(" · ")}</small>
        {node.alarms?.slice(0, 3).map((alarm) => (
          <small key={`${alarm.kind} ${alarm.session_id}`}>! {alarm.text}</small>
        ))}
      </>
    );
  }
  if (hit.kind === "edge") {
    const edge = map.edge(hit.edges?.length === 1 ? (hit.edges[0] ?? hit.id) : hit.id);
    if (!edge) {
      return (
        <>
          <strong>{hit.id}</strong>
          {hit.edges && <small>{hit.edges.length} edges drawn as one; click to see each</small>}
        </>
      );
    }
    return (
      <>
        <strong>{edge.id}</strong>
        <span data-status={edge.status}>
          {edge.status === "Healthy" ? "✓ healthy" : edge.status === "Blocked" ? "× blocked" : "! alert"}
          {edge.reason ? `: ${edge.reason}` : ""}
        </span>
        <small>
          {rate(edge.rate_per_s)} · {latency(edge)}
        </small>
      </>
    );
  }
  const group = map.group(hit.id);
  if (!group) return null;
  const states = Object.entries(group.states ?? {}).filter(([, count]) => count > 0) as [NodeState, number][];
  return (
    <>
      <strong>{group.name || "(none)"}</strong>
      <small>
        {group.agents} agents · {rate(group.rate_per_s)} · {money(group.cost_per_min)}/min
      </small>
      <small>
        {states.map(([state, count], n) => (
          <Fragment key={state}>
            {n > 0 && ", "}
            {STATE_SIGNS[state].mark} {count} {STATE_SIGNS[state].word}
          </Fragment>
        ))}
      </small>
    </>
  );
}

function latency(edge: {
  latency_p50_ms?: number | null;
  latency_p95_ms?: number | null;
  latency_mean_ms?: number | null;
}): string {
  if (edge.latency_p50_ms !== null && edge.latency_p50_ms !== undefined)
    return `p50 ${ms(edge.latency_p50_ms)}, p95 ${ms(edge.latency_p95_ms)}`;
  return edge.latency_mean_ms
    ? `follows after ${ms(edge.latency_mean_ms)} on average`
    : "no latency measured";
}
