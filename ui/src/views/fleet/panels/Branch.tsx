// Details of a cost cell: the cluster's agents that spent most in that time, and the branch of the most
// expensive session one of them works in. Costs are queried by time; the map knows each agent's cluster.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { live } from "~/live/connection";
import { useUrl } from "~/useUrl";
import { money } from "~/widgets/format";
import { Loaded } from "~/widgets/Panel";
import classes from "./CostHeat.module.css";
import { cellSpan } from "./heat";

interface Props {
  cluster: string | null;
  title: string;
  column: string;
  bucket: "minute" | "hour";
  cost: number;
}

export function clusterOf(agent: string | null): string | null | undefined {
  if (agent === null) return undefined;
  const node = live.picture("fleet")?.of("node").get(agent);
  return node ? (node.cluster_id as string | null) : undefined;
}

export function Branch({ cluster, title, column, bucket, cost }: Props) {
  const [, setUrl] = useUrl();
  const span = cellSpan(column, bucket);
  const agents = useApi("/v1/costs", { by: "agent", ...span, limit: 200 }, { enabled: cost > 0 });
  const sessions = useApi("/v1/costs", { by: "session", ...span, limit: 1 }, { enabled: cost > 0 });
  const session_id = sessions.data?.items[0]?.id ?? null;
  const branches = useApi(
    "/v1/sessions/{session_id}/costs",
    { limit: 50 },
    { params: { session_id: session_id ?? "" }, enabled: session_id !== null },
  );
  if (cost <= 0) return <span className={classes.hint}>{title}: nothing spent.</span>;
  const branch =
    branches.data?.branches.find((one) => clusterOf(one.agent_id) === cluster) ?? branches.data?.branches[0];
  return (
    <div>
      <strong>{title}</strong>
      <Loaded query={agents} rows={1}>
        {({ items }) => {
          const mine = items.filter((item) => cluster === null || clusterOf(item.id) === cluster).slice(0, 2);
          return (
            <span>
              {mine.length > 0 && " · most by "}
              {mine.map((item, n) => (
                <span key={item.id}>
                  {n > 0 && ", "}
                  <button
                    type="button"
                    className={classes.link}
                    onClick={() => setUrl({ peek: `agent:${item.id}` })}
                  >
                    {item.id}
                  </button>{" "}
                  {money(item.cost)}
                </span>
              ))}
            </span>
          );
        }}
      </Loaded>
      {session_id && (
        <div className={classes.branch}>
          most expensive branch{branch ? ` (${money(branch.branch_cost)})` : ""}:{" "}
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: session_id }}
            search={{ step: branch?.step, colour: "cost" } as never}
          >
            {branch?.intent ?? session_id}
          </Link>
        </div>
      )}
    </div>
  );
}
