// Agents that call other tools than is usual in their type, each against its kind.
import { Link } from "@tanstack/react-router";
import type { DivergenceItem } from "~/protocol/openapi";
import classes from "./Drift.module.css";

function most(tools: Record<string, number>): string {
  return Object.entries(tools)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 4)
    .map(([tool, share]) => `${tool} ${Math.round(share * 100)} %`)
    .join(", ");
}

export function Divergences({ items }: { items: readonly DivergenceItem[] }) {
  if (items.length === 0)
    return (
      <p className={classes.calm}>
        No agent uses its tools unlike others of its type (from 20 calls and two others on).
      </p>
    );
  return (
    <ul className={classes.unlike}>
      {items.map((one) => (
        <li key={one.agent_id}>
          <span>
            {one.agent_id ? (
              <Link to="/registry/$agentId" params={{ agentId: one.agent_id }}>
                {one.agent_id}
              </Link>
            ) : (
              "not known"
            )}{" "}
            <span className={classes.note}>
              distance {one.distance} to {one.peers} others of {one.agent_type}, {one.calls} calls
            </span>
          </span>
          <span className={classes.note}>
            it uses {most(one.tools)}; usual is {most(one.usual_tools)}
          </span>
        </li>
      ))}
    </ul>
  );
}
