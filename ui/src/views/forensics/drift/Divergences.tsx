// Agents whose tool usage differs from others of their type.
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
        No outliers: every agent uses its tools like others of its type (needs 20 calls and two others).
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
              "unknown"
            )}{" "}
            <span className={classes.note}>
              distance {one.distance} to {one.peers} others of type {one.agent_type}, {one.calls} calls
            </span>
          </span>
          <span className={classes.note}>
            uses {most(one.tools)}; typical: {most(one.usual_tools)}
          </span>
        </li>
      ))}
    </ul>
  );
}
