// Heartbeats of an agent: the last one, its reported task, and the last hour minute by minute.

import { Progress } from "@mantine/core";
import type { AgentItem } from "~/protocol/openapi";
import { clock } from "~/widgets/clock";
import { Ago } from "~/widgets/Figures";
import { short } from "~/widgets/format";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Panel } from "~/widgets/Panel";
import { minutes, reaches } from "../history";
import { LivenessMark } from "../LivenessMark";
import classes from "./Agent.module.css";
import type { Past } from "./useHistory";

const MINUTES = 60;

export function HeartbeatHistory({ agent, history }: { agent: AgentItem; history: Past }) {
  const task = agent.task as { description?: string; task_id?: string; progress_pct?: number } | null;
  const usage = agent.usage as { tokens_consumed_24h?: number; api_calls_24h?: number } | null;
  return (
    <Panel title="Heartbeats" aside={<LivenessMark live={agent.liveness} />}>
      <div className={classes.part}>
        <p className={classes.line}>
          {agent.last_heartbeat_at ? (
            <span>
              last heard <Ago at={agent.last_heartbeat_at} />
            </span>
          ) : (
            <span>No heartbeat yet, so it is never marked dead. POST /v1/heartbeat sends one.</span>
          )}
          {agent.status && <Tag tone="idle">{agent.status}</Tag>}
          {task && <span>{task.description ?? task.task_id ?? "task"}</span>}
          {usage?.tokens_consumed_24h !== undefined && (
            <span>{short(usage.tokens_consumed_24h)} tokens in 24 h</span>
          )}
          {usage?.api_calls_24h !== undefined && <span>{short(usage.api_calls_24h)} calls in 24 h</span>}
        </p>
        {typeof task?.progress_pct === "number" && (
          <Progress value={task.progress_pct} size="sm" aria-label="Task progress" />
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
        Last hour: a heartbeat in {beats} of 60 minutes, no events in {quiet}
        {from > (cells[0]?.at ?? 0) &&
          (history.whole ? ", not registered in the others" : ", the others not loaded yet")}
        . A beat without news is recorded once a minute.
      </figcaption>
    </figure>
  );
}
