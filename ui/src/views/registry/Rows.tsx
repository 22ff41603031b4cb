// The two kinds of registry rows: a type with its totals, an instance. A click on a type selects it; on an
// instance it opens the panel, and the name links to its page.
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { AgentItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Tag } from "~/widgets/Mark";
import { Dots, LivenessMark } from "./LivenessMark";
import { BREAKERS, type Group, leading, TRUSTS, whole } from "./registryRows";
import classes from "./Table.module.css";

interface Placed {
  index: number;
  reached: boolean;
  onReach: (index: number) => void;
  onOpen: (index: number) => void;
}

export function GroupRow({
  group,
  open,
  chosen,
  index,
  reached,
  onReach,
  onOpen,
}: Placed & { group: Group; open: boolean; chosen: boolean }) {
  const trusts = Object.keys(group.trusts).map((one) => TRUSTS[one as AgentItem["trust_level"]] ?? one);
  const clusters = Object.keys(group.clusters).length;
  const circuit = group.breaker && BREAKERS[group.breaker];
  return (
    <tr
      className={classes.row}
      data-index={index}
      data-group={group.name}
      data-reached={reached || undefined}
      aria-rowindex={index + 2}
      aria-current={chosen || undefined}
      tabIndex={reached ? 0 : -1}
      onFocus={() => onReach(index)}
      onClick={() => onOpen(index)}
    >
      <th scope="row" data-column="name" title={group.name}>
        <button type="button" className={classes.turn} aria-expanded={open} tabIndex={reached ? 0 : -1}>
          <span aria-hidden>{open ? "▾" : "▸"}</span>
          {group.name}
        </button>
        {group.kind === "capability" && <span className={classes.faint}> capability</span>}
      </th>
      <td data-column="health">
        <b className={classes.count} data-none={(group.healthy === 0 && group.total > 0) || undefined}>
          {group.healthy}
        </b>
        <span className={classes.faint}> of {group.total}</span> <Dots agents={group.agents} />
      </td>
      <td data-column="version" title={whole(group.versions)}>
        {leading(group.versions)}
      </td>
      <td data-column="model" title={whole(group.models)}>
        {leading(group.models)}
      </td>
      <td data-column="trust">{leading(trusts)}</td>
      <td data-column="capabilities" title={group.capabilities.join(", ")}>
        {group.capabilities.join(", ") || "–"}
      </td>
      <td data-column="cluster" title={whole(group.clusters)}>
        {clusters > 1 ? `${clusters} clusters` : leading(group.clusters)}
      </td>
      <td data-column="hub" title={group.hubs.join("\n")}>
        {leading(group.hubs)}
      </td>
      <td data-column="circuit">
        {circuit ? (
          <Tag tone={circuit.tone}>
            {circuit.mark} {circuit.word}
          </Tag>
        ) : (
          <span className={classes.faint}>none</span>
        )}
        {group.weights && (
          <span className={classes.weighted} title="weighted traffic split">
            {" "}
            ⚖<span className="unseen"> weighted</span>
          </span>
        )}
      </td>
    </tr>
  );
}

/** Rendered again only when its agent changed: of a thousand, scrolling touches dozens. */
export const AgentRow = memo(function AgentRow({
  agent,
  peeked,
  index,
  reached,
  onReach,
}: Omit<Placed, "onOpen"> & { agent: AgentItem; peeked: boolean }) {
  const [, setUrl] = useUrl();
  return (
    <tr
      className={classes.row}
      data-index={index}
      data-agent={agent.agent_id}
      data-reached={reached || undefined}
      aria-rowindex={index + 2}
      aria-current={peeked || undefined}
      tabIndex={reached ? 0 : -1}
      onFocus={(event) => event.target === event.currentTarget && onReach(index)}
      onClick={(event) =>
        !(event.target as Element).closest("a") && setUrl({ peek: `agent:${agent.agent_id}` })
      }
    >
      <th scope="row" data-column="name" data-agent title={agent.display_name}>
        <Link to="/registry/$agentId" params={{ agentId: agent.agent_id }} tabIndex={reached ? 0 : -1}>
          {agent.agent_id}
        </Link>
      </th>
      <td data-column="health">
        <LivenessMark live={agent.liveness} />
      </td>
      <td data-column="version">{agent.capability_version ?? "–"}</td>
      <td data-column="model" title={agent.provider ?? undefined}>
        {agent.model ?? "–"}
      </td>
      <td data-column="trust">{TRUSTS[agent.trust_level]}</td>
      <td data-column="capabilities" title={agent.capabilities.join(", ")}>
        {agent.capabilities.filter((one) => one !== agent.agent_type).join(", ") || "–"}
      </td>
      <td data-column="cluster">{agent.cluster_id ?? "–"}</td>
      <td data-column="hub" title={agent.hub_address ?? undefined}>
        {agent.hub_address ?? "–"}
      </td>
      <td data-column="circuit" />
    </tr>
  );
});
