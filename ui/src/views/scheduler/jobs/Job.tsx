// One job: what it does and when, what can be done to it, and its runs with why they failed.
import { Button, CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { pauseJob, removeJob, resumeJob, runJob } from "~/acts/jobs";
import { useAnswer } from "~/api/questions";
import type { JobItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { draftOf as keptDraft } from "~/widgets/drafts";
import { Ago, Id } from "~/widgets/Figures";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, Loading, Panel, Trouble } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import classes from "../Scheduler.module.css";
import { JobForm } from "./JobForm";
import { Runs } from "./Runs";
import { STATES, scheduleSaid, targetSaid, until } from "./words";

export function Job({ job_id }: { job_id: string }) {
  const [url, setUrl] = useUrl();
  const asked = useAnswer("/v1/jobs/{job_id}", {}, { params: { job_id }, every: 4_000, keep: true });
  const close = () => setUrl({ job: null, edit: null });
  if (asked.error?.code === 404 && !keptDraft(`job ${job_id}`))
    return (
      <Empty>
        There is no such job here: it was removed, or it belongs to another tenant. Its runs stay on record.{" "}
        <button type="button" className={classes.link} onClick={close}>
          Show all jobs
        </button>
      </Empty>
    );
  if (!asked.data)
    return asked.error ? (
      <Trouble problem={asked.error} again={() => asked.refetch()} />
    ) : (
      <Loading rows={6} />
    );
  const job = asked.data;
  if (url.edit === "1")
    return <JobForm job={job} gone={asked.error?.code === 404} end={() => setUrl({ edit: null })} />;
  return (
    <>
      <header className={classes.head}>
        <h2>{job.name}</h2>
        <Tag tone={STATES[job.state].tone}>
          {STATES[job.state].mark} {STATES[job.state].word}
        </Tag>
        <CloseButton size="sm" aria-label="Close the job" onClick={close} />
      </header>
      {asked.error && <p className={classes.note}>Not up to date: {asked.error.message}</p>}
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
        <Sure
          does={`Delete ${job.name}`}
          onNo={() => setAsking(false)}
          onYes={async () => {
            if (await removeJob(job)) setUrl({ job: null });
          }}
        >
          <p>
            It fires no more, and{" "}
            {job.waiting > 0 ? `${job.waiting} runs that wait are left out` : "nothing of it waits"}. Its runs
            and letters stay on record. This cannot be undone; Pause can.
          </p>
        </Sure>
      )}
    </>
  );
}

function About({ job }: { job: JobItem }) {
  const names = useNames();
  const now = useNow();
  const facts: [string, React.ReactNode][] = [
    ["when", job.kind === "once" ? `once, ${exact(job.at ?? "")}` : scheduleSaid(job)],
    ...(job.cron
      ? ([
          [
            "cron line",
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
          {targetSaid(job.target)}
        </Link>
      ) : (
        targetSaid(job.target)
      ),
    ],
    ["intent", job.intent],
    ["when missed", MISFIRE[job.misfire]],
    ["while at work", OVERLAP[job.overlap]],
    ["tries", `${job.max_tries}, then a dead letter`],
    ...(job.jitter_s > 0 ? ([["jitter", `up to ${job.jitter_s} s later`]] as [string, string][]) : []),
    [
      "runs",
      `${job.runs} in all${job.waiting > 0 ? `, ${job.waiting} wait` : ""}${job.failures > 0 ? `, the last ${job.failures} failed` : ""}`,
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
    ...(job.asked_by ? ([["asked by", job.asked_by]] as [string, string][]) : []),
    [
      "changed",
      <span key="changed">
        <Ago at={job.updated_at} /> by {names(job.updated_by)}
      </span>,
    ],
    ["id", <Id key="id" id={job.job_id} length={20} />],
  ];
  return (
    <Panel title="What it does">
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
  run_once: "the newest missed time is made up for",
  skip: "missed times are left out",
  run_all: "every missed time is made up for, at most 100",
};
const OVERLAP = {
  allow: "fires all the same",
  skip: "the next time is left out",
  queue: "the next waits in line, at most 10",
};
