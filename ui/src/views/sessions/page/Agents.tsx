// The session's agents and their present state: badge, cost, pause. A press selects the agent's last step.

import { pause, unpause } from "~/commands/session";
import type { SessionMember } from "~/protocol/openapi";
import { money } from "~/widgets/format";
import { useWhyNot } from "~/widgets/users";
import type { Graph, Step } from "../dag/graph";
import { BADGES } from "../dag/paint";
import classes from "./Page.module.css";

/** The badge rules of S211 as text. */
const RULES: Record<number, string> = {
  1: "its last step was terminal",
  2: "paused by a person",
  3: "one of its messages is held",
  4: "waiting for a decision",
  5: "its last step was refused or rejected",
  6: "waiting for a tool result",
  7: "its last step is pending",
  8: "silent for a minute",
  9: "active within the last minute",
};

export function Agents({
  sessionId,
  graph,
  members,
  select,
}: {
  sessionId: string;
  graph: Graph;
  members: SessionMember[];
  select: (step: Step) => void;
}) {
  const denied = useWhyNot("operate");
  const paused = new Set(members.filter((one) => one.paused).map((one) => one.agent_id));
  if (graph.agents.length === 0) return null;
  return (
    <ul className={classes.agents} aria-label="Agents of this session">
      {graph.agents.map((agent) => {
        const badge = BADGES[agent.badge];
        const last = graph.byId.get(agent.last_step);
        const stopped = paused.has(agent.agent_id);
        return (
          <li key={agent.agent_id}>
            <button
              type="button"
              className={classes.who}
              title={`${agent.agent_id}: ${RULES[agent.badge_rule] ?? agent.badge}`}
              onClick={() => last && select(last)}
            >
              <strong>{agent.agent_id}</strong>
              <span className={classes.badge} data-tone={badge.tone}>
                <span aria-hidden>{badge.mark}</span> {agent.badge}
              </span>
              <span className={classes.faint}>{money(agent.cost)}</span>
            </button>
            <button
              type="button"
              className={classes.stop}
              aria-label={`${stopped ? "Resume" : "Pause"} ${agent.agent_id}`}
              title={denied ?? `${stopped ? "Resume" : "Pause"} ${agent.agent_id}`}
              disabled={denied !== undefined}
              // The second press of a double click would undo the first.
              onClick={(event) =>
                event.detail < 2 && void (stopped ? unpause : pause)(sessionId, agent.agent_id)
              }
            >
              {stopped ? "▶" : "‖"}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
