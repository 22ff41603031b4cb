// Agents with overdue heartbeats: silence, time until eviction, and evict; and the stuck sessions.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import { evict } from "~/commands/agents";
import type { AgentItem } from "~/protocol/openapi";
import { usePeek } from "~/shell/peek";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Ago } from "~/widgets/Figures";
import { LIVES } from "~/widgets/liveness";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Loaded, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "../Scheduler.module.css";
import { silenceOf, timer, zombies } from "./beats";

const MAX_ROWS = 50;

export function SilentAgents({ agents }: { agents: readonly AgentItem[] }) {
  const minute = Math.floor(useNow() / 60_000) * 60_000;
  const found = useMemo(() => zombies(agents, minute), [agents, minute]);
  const denied = useWhyNot("operate");
  const healthy = agents.some((one) => one.liveness === "healthy");
  if (found.length === 0)
    return (
      <p className={classes.calm}>
        {healthy ? "✓ No overdue heartbeats." : "No heartbeats yet."} An agent without a heartbeat for 30 s is
        silent; after 90 s it is evicted automatically.
      </p>
    );
  return (
    <>
      <ul className={classes.list} aria-label="Silent agents">
        {found.slice(0, MAX_ROWS).map((agent) => (
          <Zombie key={agent.entity_id} agent={agent} denied={denied} />
        ))}
      </ul>
      {found.length > MAX_ROWS && <p className={classes.calm}>and {found.length - MAX_ROWS} more</p>}
      {denied && <p className={classes.calm}>{denied}</p>}
    </>
  );
}

function Zombie({ agent, denied }: { agent: AgentItem; denied: string | undefined }) {
  const now = useNow();
  const { open } = usePeek();
  const [asking, setAsking] = useState(false);
  const sign = LIVES[agent.liveness];
  const silent = silenceOf(agent, now);
  return (
    <li>
      <Tag tone={sign.tone}>
        {sign.mark} {sign.word}
      </Tag>
      <button type="button" className={classes.link} onClick={() => open(`agent:${agent.agent_id}`)}>
        {agent.agent_id}
      </button>
      <span className={classes.faint}>
        {silent === null ? "no heartbeat yet" : <>silent for {timer(silent)}</>}
        {agent.liveness === "evicted" && agent.evicted_at && (
          <>
            , evicted <Ago at={agent.evicted_at} />
          </>
        )}
      </span>
      {agent.liveness === "zombie" && (
        <Button
          className={classes.end}
          size="compact-xs"
          variant="default"
          disabled={denied !== undefined}
          title={denied}
          aria-expanded={asking}
          onClick={() => setAsking(!asking)}
        >
          Evict…<span className="unseen"> {agent.agent_id}</span>
        </Button>
      )}
      {asking && agent.liveness === "zombie" && (
        <div className={classes.why}>
          <ConfirmInline
            does={`Evict ${agent.agent_id}`}
            onNo={() => setAsking(false)}
            onYes={async () => {
              if (await evict(agent.agent_id)) setAsking(false);
            }}
          >
            <p>
              It leaves the map, and its undelivered work goes to another agent of its type. Its history is
              kept; its next heartbeat brings it back.
            </p>
          </ConfirmInline>
        </div>
      )}
    </li>
  );
}

export function Stuck() {
  const query = useApi("/v1/sessions/stuck", { limit: 10 }, { every: 10_000, keep: true });
  return (
    <Panel title="Stuck sessions">
      <Loaded query={query} rows={2}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <p className={classes.calm}>✓ None.</p>
          ) : (
            <>
              <ul className={classes.list} aria-label="Stuck sessions">
                {items.map((one) => (
                  <li key={one.session_id}>
                    <Link to="/sessions/$sessionId" params={{ sessionId: one.session_id }}>
                      {one.goal ?? one.session_id}
                    </Link>
                    <span className={classes.faint}>
                      {one.stuck_reason === "pending" ? "waiting for a decision for" : "no activity for"}{" "}
                      <Ago at={one.stuck_since} />
                    </span>
                  </li>
                ))}
              </ul>
              {next_cursor && (
                <p className={classes.calm}>
                  <Link to="/sessions" search={{ status: "stuck" } as never}>
                    all of them
                  </Link>
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}
