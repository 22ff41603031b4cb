// An agent's spend in the last day, hour by hour, and its share of the total.

import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import { clock } from "~/widgets/clock";
import { Money } from "~/widgets/Figures";
import { money } from "~/widgets/format";
import { Loaded, Panel } from "~/widgets/Panel";
import classes from "./Agent.module.css";

export function Cost({ agent_id }: { agent_id: string }) {
  const query = useApi(
    "/v1/costs/heatmap",
    { by: "agent", bucket: "hour", limit: 200 },
    { every: 15_000, keep: true },
  );
  const spent = useApi("/v1/costs", { by: "agent", limit: 1_000 }, { every: 15_000, keep: true });
  const mine = spent.data?.items.find((one) => one.id === agent_id);
  return (
    <Panel title="Cost, 24 h">
      <Loaded query={query} rows={2}>
        {(grid) => {
          const row = grid.rows.find((one) => one.id === agent_id);
          const most = Math.max(...(row?.values ?? []), 0);
          return (
            <div className={classes.part}>
              <p className={classes.line}>
                <b className={classes.sum}>
                  <Money dollars={mine?.cost ?? row?.total ?? 0} />
                </b>
                {mine && (
                  <span>
                    {(mine.share * 100).toFixed(1)} % of all, {mine.tokens.toLocaleString("en")} tokens,{" "}
                    {plural(mine.messages, "message")}
                  </span>
                )}
              </p>
              {row && most > 0 ? (
                <figure className={classes.strip}>
                  <div className={classes.columnsOf} aria-hidden>
                    {row.values.map((value, n) => (
                      <span
                        key={grid.columns[n]}
                        style={{ height: `${Math.max(value > 0 ? 6 : 0, (value / most) * 100)}%` }}
                        title={`${clock(grid.columns[n] ?? "")}: ${money(value)}`}
                      />
                    ))}
                  </div>
                  <figcaption>
                    24 hours; the most expensive hour cost {money(most)}, this one{" "}
                    {money(row.values.at(-1) ?? 0)}.
                  </figcaption>
                </figure>
              ) : (
                <p className={classes.faint}>
                  {mine?.cost
                    ? "Not among the top 200 spenders, so no hourly chart."
                    : "No spend in the last day."}
                </p>
              )}
            </div>
          );
        }}
      </Loaded>
    </Panel>
  );
}
