// Who leads the schedule, in one line that is always there: whether anybody does, how late it is, what waits.
import type { Problem } from "~/api/client";
import type { SchedulerItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { until } from "./jobs/words";
import { leading } from "./leading";
import classes from "./Scheduler.module.css";

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
          <span className={classes.stale}>! Not known who leads: {error.message}</span>
        ) : (
          "Asking who leads…"
        )}
      </p>
    );
  const stands = leading(data);
  const { leader } = data;
  return (
    <p className={classes.leader} role="status" aria-label="Leader of the schedule">
      <Tag tone={stands.tone}>
        {stands.mark} {stands.word}
      </Tag>
      {leader && (
        <>
          <span>
            {leader.is_live ? "led by " : "last led by "}
            <Id id={leader.holder} length={18} />
            {leader.is_this_gateway && " (this gateway)"}
          </span>
          <span title="It rises by one with every change of leader; what a leader of before still writes is refused.">
            epoch <b>{leader.epoch}</b>
          </span>
          <span>
            last tick <Ago at={leader.last_tick_at} />
          </span>
        </>
      )}
      <span>{data.next_at ? <>next {until(data.next_at, now)}</> : "nothing is scheduled"}</span>
      <span className={classes.wide}>{stands.says}</span>
      {error && <span className={classes.stale}>Not up to date: {error.message}</span>}
    </p>
  );
}
