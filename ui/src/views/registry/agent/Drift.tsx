// Drift of an agent: unusual tool usage compared with others of its type, and facts that conflict with those
// of others.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { AgentItem, DriftAnswer } from "~/protocol/openapi";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import classes from "./Agent.module.css";

type Conflict = DriftAnswer["conflicts"][number];

function holds(conflict: Conflict, agent_id: string): Conflict["sides"][number] | undefined {
  return conflict.sides.find((side) => side.holders.some((one) => one.agent_id === agent_id));
}

function used(tools: Record<string, number>): string {
  return Object.entries(tools)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 4)
    .map(([tool, share]) => `${tool} ${Math.round(share * 100)} %`)
    .join(", ");
}

export function Drift({ agent }: { agent: AgentItem }) {
  const query = useApi("/v1/drift", { hours: 168 }, { every: 30_000, keep: true });
  const id = agent.agent_id;
  return (
    <Panel title="Drift, 7 days">
      <Loaded query={query} rows={1}>
        {({ conflicts, divergences }) => {
          const unlike = divergences.find((one) => one.agent_id === id);
          const mine = conflicts.flatMap((one) => {
            const side = holds(one, id);
            return side ? [{ one, side }] : [];
          });
          if (!unlike && mine.length === 0)
            return <p className={classes.calm}>No drift: typical tool usage and no conflicting facts.</p>;
          return (
            <ul className={classes.drift}>
              {unlike && (
                <li>
                  <Tag tone="blocked">! outlier</Tag>
                  <span className={classes.text}>
                    distance {unlike.distance} (threshold {unlike.threshold}) to {unlike.peers} others: uses{" "}
                    {used(unlike.tools)}; typical: {used(unlike.usual_tools)}
                  </span>
                </li>
              )}
              {mine.slice(0, 10).map(({ one, side }) => (
                <li key={`${one.scope} ${one.subject}`}>
                  <Tag tone={one.reconciled ? "idle" : "alert"}>
                    {one.reconciled ? "✓ resolved" : "! conflict"}
                  </Tag>
                  <span className={classes.text}>
                    {one.subject}: its value {side.value}, others{" "}
                    {one.sides
                      .filter((other) => other !== side)
                      .map((other) => other.value)
                      .join(", ")}
                    {one.reconciled && `; resolved: ${one.reconciled.value}`}
                  </span>
                  {one.scope.startsWith("session:") && (
                    <Link
                      to="/sessions/$sessionId"
                      params={{ sessionId: one.scope.slice("session:".length) }}
                    >
                      session
                    </Link>
                  )}
                </li>
              ))}
              {mine.length > 10 && <li>and {mine.length - 10} more</li>}
            </ul>
          );
        }}
      </Loaded>
    </Panel>
  );
}
