// When an agent was heard: its last heartbeat, what it said it does, and the last hour minute by minute.

import { Progress } from "@mantine/core";
import type { AgentItem } from "~/protocol/openapi";
import { clock } from "~/widgets/clock";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Panel } from "~/widgets/Panel";
import { short } from "~/widgets/words";
import { minutes, reaches } from "../history";
import { Life } from "../Life";
import classes from "./Agent.module.css";
import type { Past } from "./useHistory";

const MINUTES = 60;

export function Beats({ agent, history }: { agent: AgentItem; history: Past }) {
  const task = agent.task as { description?: string; task_id?: string; progress_pct?: number } | null;
  const usage = agent.usage as { tokens_consumed_24h?: number; api_calls_24h?: number } | null;
  return (
    <Panel title="Heartbeats" aside={<Life live={agent.liveness} />}>
      <div className={classes.part}>
        <p className={classes.line}>
          {agent.last_heartbeat_at ? (
            <span>
              last heard <Ago at={agent.last_heartbeat_at} />
            </span>
          ) : (
            <span>
              It has sent no heartbeat, so it is never taken for dead. POST /v1/heartbeat sends one.
            </span>
          )}
          {agent.status && <Tag tone="idle">{agent.status}</Tag>}
          {task && <span>{task.description ?? task.task_id ?? "a task"}</span>}
          {usage?.tokens_consumed_24h !== undefined && (
            <span>{short(usage.tokens_consumed_24h)} tokens in 24 h</span>
          )}
          {usage?.api_calls_24h !== undefined && <span>{short(usage.api_calls_24h)} calls in 24 h</span>}
        </p>
        {typeof task?.progress_pct === "number" && (
          <Progress value={task.progress_pct} size="sm" aria-label="Progress of its task" />
        )}
        {history.ready && <Strip history={history} first={agent.first_seen_at} />}
      </div>
    </Panel>
  );
}

function Strip({ history, first }: { history: Past; first: string }) {
  const now = useNow();
  const minute = Math.floor(now / 60_000);
  const cells = minutes(history.lines, minute * 60_000, MINUTES);
  const from = reaches(history.lines, history.whole, first);
  const beats = cells.filter((cell) => cell.beats > 0).length;
  const quiet = cells.filter((cell) => cell.beats + cell.others === 0 && cell.at >= from).length;
  return (
    <figure className={classes.strip}>
      <div aria-hidden className={classes.cells}>
        {cells.map((cell) => (
          <span
            key={cell.at}
            data-life={
              cell.beats > 0 ? "beat" : cell.others > 0 ? "word" : cell.at < from ? "unread" : "none"
            }
            title={`${clock(cell.at)}: ${cell.beats} heartbeats, ${cell.others} other events`}
          >
            {cell.beats > 0 ? "♥" : cell.others > 0 ? "·" : ""}
          </span>
        ))}
      </div>
      <figcaption>
        Last hour in the record: a heartbeat in {beats} of 60 minutes, nothing at all in {quiet}
        {from > (cells[0]?.at ?? 0) &&
          (history.whole ? ", not there yet in the others" : ", the others not read yet")}
        . A beat without news is recorded once a minute.
      </figcaption>
    </figure>
  );
}
