// An agent's sessions, newest first, each with its own pause button.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { pause, unpause } from "~/commands/session";
import { Ago, Money } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { STATUSES } from "~/widgets/status";
import { useWhyNot } from "~/widgets/users";
import classes from "./agent.module.css";

const FEW = 5;

export function useSessionsOf(agent_id: string) {
  return useApi(
    "/v1/agents/{agent_id}/sessions",
    { limit: 20 },
    { params: { agent_id }, every: 3_000, keep: true },
  );
}

export function AgentSessions({ id }: { id: string }) {
  const query = useSessionsOf(id);
  const [all, setAll] = useState(false);
  return (
    <section className={classes.part} aria-label="Sessions">
      <h4>Sessions</h4>
      <Loaded query={query}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty>No sessions yet.</Empty>
          ) : (
            <>
              <ul className={classes.sessions}>
                {(all ? items : items.slice(0, FEW)).map((one) => (
                  <li key={one.session_id}>
                    <Link
                      to="/sessions/$sessionId"
                      params={{ sessionId: one.session_id }}
                      search={(one.last_step ? { step: one.last_step } : {}) as never}
                      title={one.session_id}
                    >
                      {one.goal ?? one.session_id}
                    </Link>
                    <span className={classes.line}>
                      <Tag tone={STATUSES[one.status].tone}>
                        {STATUSES[one.status].mark} {STATUSES[one.status].word}
                      </Tag>
                      <Ago at={one.last_at} /> · <Money dollars={one.cost} />
                      {one.held > 0 && <span>· {one.held} held</span>}
                      {one.paused && one.paused_by && (
                        <span title={`by ${one.paused_by}`}>
                          · paused <Ago at={one.paused_at} />
                        </span>
                      )}
                    </span>
                    <Halt
                      session_id={one.session_id}
                      agent_id={id}
                      paused={one.paused}
                      ended={one.status === "ended"}
                    />
                  </li>
                ))}
              </ul>
              {items.length > FEW && !all && (
                <button type="button" className={classes.link} onClick={() => setAll(true)}>
                  Show {items.length - FEW} more
                </button>
              )}
              {all && next_cursor && (
                <p className={classes.more}>For older ones, search Sessions by the agent's name.</p>
              )}
            </>
          )
        }
      </Loaded>
    </section>
  );
}

function Halt({
  session_id,
  agent_id,
  paused,
  ended,
}: {
  session_id: string;
  agent_id: string;
  paused: boolean;
  ended: boolean;
}) {
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  if (ended && !paused) return null;
  const run = async () => {
    setBusy(true);
    await (paused ? unpause(session_id, agent_id) : pause(session_id, agent_id));
    setBusy(false);
  };
  return (
    <Button
      size="compact-xs"
      variant="default"
      className={classes.halt}
      loading={busy}
      disabled={denied !== undefined}
      title={denied}
      aria-label={`${paused ? "Resume" : "Pause"} in session ${session_id}`}
      onClick={() => void run()}
    >
      {paused ? "Resume" : "Pause"}
    </Button>
  );
}
