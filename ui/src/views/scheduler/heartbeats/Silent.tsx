// Who missed their check-ins: for how long, until when, and the way to take them out of the map; and the
// sessions in which nothing moves, which is what silence does to work.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { evict } from "~/acts/agents";
import { useAnswer } from "~/api/questions";
import type { AgentItem } from "~/protocol/openapi";
import { usePeek } from "~/shell/peeking";
import { Ago } from "~/widgets/Figures";
import { LIVES } from "~/widgets/lives";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Panel, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import classes from "../Scheduler.module.css";
import { silenceOf, timer, zombies } from "./beats";

const MOST = 50;

export function Silent({ agents }: { agents: readonly AgentItem[] }) {
  const minute = Math.floor(useNow() / 60_000) * 60_000;
  const found = useMemo(() => zombies(agents, minute), [agents, minute]);
  const denied = useWhyNot("operate");
  const healthy = agents.some((one) => one.liveness === "healthy");
  if (found.length === 0)
    return (
      <p className={classes.calm}>
        {healthy ? "✓ Nobody has missed a check-in." : "No heartbeat has been heard yet."} An agent that is
        not heard for 30 s is silent; after 90 s it is evicted by itself.
      </p>
    );
  return (
    <>
      <ul className={classes.list} aria-label="Silent agents">
        {found.slice(0, MOST).map((agent) => (
          <Zombie key={agent.entity_id} agent={agent} denied={denied} />
        ))}
      </ul>
      {found.length > MOST && <p className={classes.calm}>and {found.length - MOST} more</p>}
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
        {silent === null ? "never heard" : <>silent for {timer(silent)}</>}
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
          <Sure
            does={`Evict ${agent.agent_id}`}
            onNo={() => setAsking(false)}
            onYes={async () => {
              if (await evict(agent.agent_id)) setAsking(false);
            }}
          >
            <p>
              It leaves the map, and what it has not taken goes to another of its type. Its history stays; its
              next heartbeat brings it back.
            </p>
          </Sure>
        </div>
      )}
    </li>
  );
}

export function Stuck() {
  const asked = useAnswer("/v1/sessions/stuck", { limit: 10 }, { every: 10_000, keep: true });
  return (
    <Panel title="Sessions in which nothing moves">
      <Shown asked={asked} rows={2}>
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
                      {one.stuck_reason === "pending" ? "waits for somebody" : "nobody says anything"} since{" "}
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
      </Shown>
    </Panel>
  );
}
