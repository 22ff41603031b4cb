// The runs of a job, newest first: state, time, attempts, failure reason, and destination.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import type { JobItem, RunItem } from "~/protocol/openapi";
import { usePeek } from "~/shell/peek";
import { Ago } from "~/widgets/Figures";
import { span } from "~/widgets/format";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Loaded, Panel } from "~/widgets/Panel";
import classes from "../Scheduler.module.css";
import { RUNS, reasonText, until } from "./jobText";

const [FEW, MANY] = [10, 200];

export function Runs({ job }: { job: JobItem }) {
  const [limit, setLimit] = useState(FEW);
  const query = useApi(
    "/v1/jobs/{job_id}/runs",
    { limit },
    { params: { job_id: job.job_id }, every: 3_000, keep: true },
  );
  return (
    <Panel title="Runs" aside={job.runs > 0 ? `${job.runs} total` : undefined}>
      <Loaded query={query}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <p className={classes.calm}>No runs yet. Run now runs it once, off schedule.</p>
          ) : (
            <>
              <ul className={classes.list} aria-label={`Runs of ${job.name}`}>
                {items.map((run) => (
                  <Run key={run.run_id} run={run} />
                ))}
              </ul>
              {next_cursor && limit < MANY && (
                <div className={classes.part}>
                  <Button
                    size="compact-sm"
                    variant="default"
                    onClick={() => setLimit(Math.min(MANY, limit * 4))}
                  >
                    Show earlier runs
                  </Button>
                </div>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Run({ run }: { run: RunItem }) {
  const { open } = usePeek();
  const now = useNow();
  const sign = RUNS[run.state];
  const late = run.ended_at ? Date.parse(run.ended_at) - Date.parse(run.scheduled_for) : 0;
  return (
    <li>
      <Tag tone={sign.tone}>
        {sign.mark} {sign.word}
      </Tag>
      <Ago at={run.scheduled_for} />
      {run.manual && <span className={classes.faint}>manual</span>}
      {run.tries > 1 && <span className={classes.faint}>{run.tries} tries</span>}
      {late > 5_000 && <span className={classes.faint}>{span(late)} late</span>}
      {run.state === "sent" && (
        <span className={classes.faint}>{run.acknowledged_at ? "acknowledged" : "not acknowledged yet"}</span>
      )}
      <span className={classes.end}>
        {run.message_id && (
          <button type="button" className={classes.link} onClick={() => open(`message:${run.message_id}`)}>
            message
          </button>
        )}{" "}
        {run.message_id && run.session_id && (
          <Link to="/sessions/$sessionId" params={{ sessionId: run.session_id }}>
            session
          </Link>
        )}
        {run.state === "dead" && (
          <Link to="/scheduler" search={{ board: "letters" } as never}>
            dead letter
          </Link>
        )}
      </span>
      {run.reason && <span className={classes.why}>Reason: {reasonText(run.reason)}</span>}
      {run.next_try_at && <span className={classes.why}>tried again {until(run.next_try_at, now)}</span>}
    </li>
  );
}
