// One job: its definition and schedule, its actions, and its runs with their failure reasons.
import { Button, CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { pauseJob, removeJob, resumeJob, runJob } from "~/commands/jobs";
import { plural } from "~/plural";
import type { JobItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { exact } from "~/widgets/clock";
import { draftOf as keptDraft } from "~/widgets/drafts";
import { Ago, Id } from "~/widgets/Figures";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import classes from "../Scheduler.module.css";
import { JobForm } from "./JobForm";
import { STATES, scheduleText, targetText, until } from "./jobText";
import { Runs } from "./Runs";

export function Job({ job_id }: { job_id: string }) {
  const [url, setUrl] = useUrl();
  const query = useApi("/v1/jobs/{job_id}", {}, { params: { job_id }, every: 4_000, keep: true });
  const close = () => setUrl({ job: null, edit: null });
  if (query.error?.code === 404 && !keptDraft(`job ${job_id}`))
    return (
      <Empty>
        There is no such job: it was removed, or it belongs to another tenant. Its run history is kept.{" "}
        <button type="button" className={classes.link} onClick={close}>
          Show all jobs
        </button>
      </Empty>
    );
  if (!query.data)
    return query.error ? (
      <ErrorNotice problem={query.error} again={() => query.refetch()} />
    ) : (
      <Loading rows={6} />
    );
  const job = query.data;
  if (url.edit === "1")
    return <JobForm job={job} gone={query.error?.code === 404} end={() => setUrl({ edit: null })} />;
  return (
    <>
      <header className={classes.head}>
        <h2>{job.name}</h2>
        <Tag tone={STATES[job.state].tone}>
          {STATES[job.state].mark} {STATES[job.state].word}
        </Tag>
        <CloseButton size="sm" aria-label="Close the job" onClick={close} />
      </header>
      {query.error && <p className={classes.note}>Not up to date: {query.error.message}</p>}
      <Acts job={job} />
      <About job={job} />
      <Runs job={job} />
    </>
  );
}

function Acts({ job }: { job: JobItem }) {
  const [, setUrl] = useUrl();
  const denied = useWhyNot("operate");
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const doing = async (run: () => Promise<unknown>) => {
    setBusy(true);
    await run();
    setBusy(false);
  };
  const plain = {
    size: "compact-sm",
    variant: "default",
    disabled: denied !== undefined || busy,
    title: denied,
  } as const;
  return (
    <>
      <div className={classes.buttons}>
        <Button {...plain} onClick={() => void doing(() => runJob(job))}>
          Run now
        </Button>
        {job.state === "active" && (
          <Button {...plain} onClick={() => void doing(() => pauseJob(job))}>
            Pause
          </Button>
        )}
        {job.state === "paused" && (
          <Button {...plain} onClick={() => void doing(() => resumeJob(job))}>
            Resume
          </Button>
        )}
        {job.asked_by === null && (
          <Button {...plain} onClick={() => setUrl({ edit: "1" })}>
            Edit…
          </Button>
        )}
        <Button {...plain} aria-expanded={asking} onClick={() => setAsking(!asking)}>
          Delete…
        </Button>
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
      {asking && (
        <ConfirmInline
          does={`Delete ${job.name}`}
          onNo={() => setAsking(false)}
          onYes={async () => {
            if (await removeJob(job)) setUrl({ job: null });
          }}
        >
          <p>
            It stops running, and{" "}
            {job.waiting > 0
              ? `${plural(job.waiting, "pending run is", "pending runs are")} skipped`
              : "no run is pending"}
            . Its run history and dead letters are kept. This cannot be undone; Pause can.
          </p>
        </ConfirmInline>
      )}
    </>
  );
}

function About({ job }: { job: JobItem }) {
  const names = useNames();
  const now = useNow();
  const facts: [string, React.ReactNode][] = [
    ["when", job.kind === "once" ? `once, ${exact(job.at ?? "")}` : scheduleText(job)],
    ...(job.cron
      ? ([
          [
            "cron expression",
            <code key="cron" className="mono">
              {job.cron}
            </code>,
          ],
        ] as [string, React.ReactNode][])
      : []),
    [
      "next",
      job.next_at ? (
        <span key="next" title={exact(job.next_at)}>
          {until(job.next_at, now)}, {exact(job.next_at)}
        </span>
      ) : (
        "none"
      ),
    ],
    [
      "to",
      job.target.kind === "agent" ? (
        <Link key="to" to="/registry/$agentId" params={{ agentId: job.target.name }}>
          {job.target.name}
        </Link>
      ) : job.target.kind === "capability" ? (
        <Link key="to" to="/registry" search={{ type: job.target.name } as never}>
          {targetText(job.target)}
        </Link>
      ) : (
        targetText(job.target)
      ),
    ],
    ["intent", job.intent],
    ["misfire policy", MISFIRE[job.misfire]],
    ["overlap policy", OVERLAP[job.overlap]],
    ["attempts", `${job.max_tries}, then a dead letter`],
    ...(job.jitter_s > 0 ? ([["jitter", `up to ${job.jitter_s} s later`]] as [string, string][]) : []),
    [
      "runs",
      `${job.runs} total${job.waiting > 0 ? `, ${job.waiting} pending` : ""}${job.failures > 0 ? `, the last ${job.failures} failed` : ""}`,
    ],
    ...(job.session_id
      ? ([
          [
            "in session",
            <Link key="session" to="/sessions/$sessionId" params={{ sessionId: job.session_id }}>
              {job.session_id}
            </Link>,
          ],
        ] as [string, React.ReactNode][])
      : []),
    ...(job.asked_by ? ([["requested by", job.asked_by]] as [string, string][]) : []),
    [
      "changed",
      <span key="changed">
        <Ago at={job.updated_at} /> by {names(job.updated_by)}
      </span>,
    ],
    ["id", <Id key="id" id={job.job_id} length={20} />],
  ];
  return (
    <Panel title="Definition">
      <dl className={classes.facts}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {job.payload !== null && Object.keys(job.payload as object).length > 0 && (
        <Json value={job.payload} label="Payload" />
      )}
    </Panel>
  );
}

const MISFIRE = {
  run_once: "run the latest missed",
  skip: "skip missed runs",
  run_all: "run all missed, at most 100",
};
const OVERLAP = {
  allow: "allow overlap",
  skip: "skip the next run",
  queue: "queue the next run, at most 10",
};
