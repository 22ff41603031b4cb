// Scheduler leadership in one line: the leader, its lag, what is waiting.
import type { Problem } from "~/api/client";
import type { SchedulerItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { until } from "./jobs/jobText";
import classes from "./Scheduler.module.css";
import { schedulerStatus } from "./schedulerStatus";

interface Asked {
  data: SchedulerItem | undefined;
  error: Problem | null;
}

export function Leader({ asked: { data, error } }: { asked: Asked }) {
  const now = useNow();
  if (!data)
    return (
      <p className={classes.leader} role="status">
        {error ? (
          <span className={classes.stale}>! Leader unknown: {error.message}</span>
        ) : (
          "Loading the leader…"
        )}
      </p>
    );
  const stands = schedulerStatus(data);
  const { leader } = data;
  return (
    <p className={classes.leader} role="status" aria-label="Scheduler leader">
      <Tag tone={stands.tone}>
        {stands.mark} {stands.word}
      </Tag>
      {leader && (
        <>
          <span>
            {leader.is_live ? "leader: " : "last leader: "}
            <Id id={leader.holder} length={18} />
            {leader.is_this_gateway && " (this gateway)"}
          </span>
          <span title="Increases by one with every change of leader; writes of an earlier leader are refused.">
            epoch <b>{leader.epoch}</b>
          </span>
          <span>
            last tick <Ago at={leader.last_tick_at} />
          </span>
        </>
      )}
      <span>{data.next_at ? <>next {until(data.next_at, now)}</> : "nothing scheduled"}</span>
      <span className={classes.wide}>{stands.says}</span>
      {error && <span className={classes.stale}>Not up to date: {error.message}</span>}
    </p>
  );
}
