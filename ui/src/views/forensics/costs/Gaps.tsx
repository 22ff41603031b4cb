// Differences between the costs agents reported and the sum of their steps: shown, never silently corrected.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { Ago, Money } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import classes from "./Costs.module.css";

export function Gaps() {
  const query = useApi("/v1/costs/gaps", { limit: 50 }, { every: 15_000, keep: true });
  return (
    <Panel title="Reported and computed differ">
      <Loaded query={query} rows={2}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <p className={classes.calm}>
              Nowhere: every figure agents reported is what their steps add up to.
            </p>
          ) : (
            <ul className={classes.gaps}>
              {items.map((one) => (
                <li key={one.sequence_number}>
                  <Tag tone={one.kind === "fell" ? "blocked" : "alert"}>
                    {one.kind === "fell" ? "↓ fell" : "≠ differs"}
                  </Tag>
                  <span className={classes.who}>
                    {one.agent_id ? (
                      <Link to="/registry/$agentId" params={{ agentId: one.agent_id }}>
                        {one.agent_id}
                      </Link>
                    ) : (
                      "unknown agent"
                    )}{" "}
                    reported <Money dollars={one.reported} />, its steps sum to{" "}
                    <Money dollars={one.computed} />
                  </span>
                  <span className={classes.when}>
                    {one.session_id && (
                      <Link
                        to="/sessions/$sessionId"
                        params={{ sessionId: one.session_id }}
                        search={{ step: String(one.sequence_number) } as never}
                      >
                        #{one.sequence_number}
                      </Link>
                    )}{" "}
                    <Ago at={one.at} />
                  </span>
                </li>
              ))}
              {next_cursor && <li className={classes.calm}>The newest 50; all: GET /v1/costs/gaps</li>}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
