// Who works in the session and what each is doing now: badge, cost, pause. A press goes to its last step.

import { pause, unpause } from "~/acts/acts";
import type { SessionMember } from "~/protocol/openapi";
import { useWhyNot } from "~/widgets/people";
import { money } from "~/widgets/words";
import type { Graph, Step } from "../dag/graph";
import { BADGES } from "../dag/paint";
import classes from "./Page.module.css";

/** The numbers of rule S211, in words. */
const RULES: Record<number, string> = {
  1: "its last step was the end",
  2: "a person has paused it",
  3: "a message of it is held",
  4: "it asked for a decision nobody has made",
  5: "its last step was refused or rejected",
  6: "its tool has not answered yet",
  7: "its last step is pending",
  8: "it has been silent for a minute",
  9: "it spoke within the last minute",
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
              aria-label={`${stopped ? "Unpause" : "Pause"} ${agent.agent_id}`}
              title={denied ?? `${stopped ? "Unpause" : "Pause"} ${agent.agent_id}`}
              disabled={denied !== undefined}
              // The second press of a double click would take back what the first did.
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
