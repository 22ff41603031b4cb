// All jobs: to whom, when in plain words, what comes next, how the last runs went; and beside them the one that
// is chosen, or the form of a new one.
import { Button, CloseButton, SegmentedControl, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { JobItem, RecentRun } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "../Scheduler.module.css";
import { binsFor, windowOf } from "../timeline/strip";
import { useJobs } from "../useSchedule";
import { Job } from "./Job";
import { JobForm } from "./JobForm";
import { pick, RUNS, readShown, STATES, scheduleSaid, targetSaid, until } from "./words";

export const NEW = "new";

interface Row {
  job: JobItem;
  /** Undefined where they were not asked for: of reminders, and of jobs beyond the newest hundred. */
  recent: readonly RecentRun[] | undefined;
}

export function Jobs() {
  const [url, setUrl] = useUrl();
  const shown = readShown(url);
  const asked = useJobs(shown.reminders);
  const recent = useRecent(url.window);
  const { q, state } = shown;
  const rows = useMemo(
    (): Row[] =>
      pick(asked.data?.items ?? [], { q, state }).map((job) => ({ job, recent: recent[job.job_id] })),
    [asked.data, q, state, recent],
  );
  const denied = useWhyNot("operate");
  const search = useSearchText(q, (next) => setUrl({ q: next }, true));
  const empty = asked.data?.items.length === 0 && !shown.reminders;
  const total = asked.data?.items.length ?? 0;
  return (
    <div className={classes.split} data-alone={url.job === undefined || undefined}>
      <div className={classes.main}>
        <search className={classes.bar} aria-label="Filter the jobs">
          <TextInput
            size="xs"
            type="text"
            className={classes.search}
            aria-label="Search jobs by name, target, words"
            placeholder="name, target, words"
            value={search.text}
            onChange={(event) => search.type(event.currentTarget.value)}
            rightSection={
              search.text && (
                <CloseButton
                  size="xs"
                  aria-label="clear the search"
                  onClick={() => {
                    search.clear();
                    setUrl({ q: null }, true);
                  }}
                />
              )
            }
          />
          <SegmentedControl
            size="xs"
            aria-label="State"
            data={["all", "active", "paused", "done"]}
            value={state}
            onChange={(next) => setUrl({ state: next === "all" ? null : next }, true)}
          />
          <SegmentedControl
            size="xs"
            aria-label="Whose"
            data={[
              { value: "0", label: "Jobs" },
              { value: "1", label: "Reminders" },
            ]}
            value={shown.reminders ? "1" : "0"}
            onChange={(next) => setUrl({ reminders: next === "1" ? "1" : null }, true)}
          />
          <span className={classes.right}>
            <Button
              size="compact-sm"
              disabled={denied !== undefined}
              title={denied}
              onClick={() => setUrl({ job: NEW })}
            >
              New job…
            </Button>
          </span>
        </search>
        {asked.data && rows.length > 0 && (
          <Grid
            label={shown.reminders ? "Reminders" : "Jobs"}
            columns={COLUMNS}
            rows={rows}
            keyOf={keyOf}
            current={url.job}
            onOpen={({ job }) => setUrl({ job: job.job_id, edit: null })}
          />
        )}
        {!asked.data && asked.error && <Trouble problem={asked.error} again={() => asked.refetch()} />}
        {!asked.data && !asked.error && <Loading rows={6} />}
        {empty && (
          <Empty
            command={
              'observatory jobs add morning-check --cron "0 9 * * 1-5" --to AGENT --intent "Check the canary"'
            }
          >
            No job yet. One says when, to whom and what: a message then goes to an agent, a type or a cluster.
            Make one with New job…, or:
          </Empty>
        )}
        {shown.reminders && total === 0 && asked.data && (
          <Empty command={'session.remind(in_s=3600, payload={"check": "the error rate"})'}>
            No agent has asked for a reminder. One does it in its own session:
          </Empty>
        )}
        {asked.data && total > 0 && (
          <p className={classes.foot} role="status">
            {asked.error && <span className={classes.stale}>Not up to date: {asked.error.message}</span>}
            <span>
              {rows.length === total ? total : `${rows.length} of ${total}`}{" "}
              {shown.reminders ? "reminders" : total === 1 ? "job" : "jobs"}
              {asked.data.more && " or more"}
            </span>
            {rows.length === 0 && (
              <button type="button" className={classes.link} onClick={() => setUrl({ q: null, state: null })}>
                show all
              </button>
            )}
            {denied && <span>{denied}</span>}
          </p>
        )}
      </div>
      {url.job !== undefined && (
        <aside className={classes.aside} aria-label="The chosen job" tabIndex={-1}>
          {url.job === NEW ? (
            <JobForm key={NEW} job={null} end={(made) => setUrl({ job: made?.job_id ?? null })} />
          ) : (
            <Job key={url.job} job_id={url.job} />
          )}
        </aside>
      )}
    </div>
  );
}

const keyOf = ({ job }: Row) => job.job_id;

/** The last runs of each job; the same answer as the timeline's. */
function useRecent(window: string | undefined): Record<string, readonly RecentRun[]> {
  const hours = Number(windowOf(window));
  // Whatever the strip's width asked for, the runs in it are the same.
  const asked = useAnswer("/v1/jobs/timeline", { hours, bins: binsFor(1_000) }, { keep: true, every: 4_000 });
  return useMemo(
    () => Object.fromEntries((asked.data?.lanes ?? []).map((lane) => [lane.job_id, lane.recent])),
    [asked.data],
  );
}

function Next({ job }: { job: JobItem }) {
  const now = useNow();
  if (!job.next_at) return <span className={classes.faint}>–</span>;
  return <time title={exact(job.next_at)}>{until(job.next_at, now)}</time>;
}

export function Marks({ runs, most }: { runs: readonly RecentRun[]; most: number }) {
  const shown = runs.slice(0, most).toReversed();
  if (shown.length === 0) return <span className={classes.faint}>none yet</span>;
  const failed = shown.filter((run) => run.state === "dead").length;
  return (
    <span className={classes.marks}>
      <span className="unseen">
        last {shown.length} runs, {failed} failed
      </span>
      {shown.map((run) => (
        <span
          key={run.scheduled_for}
          aria-hidden
          data-tone={RUNS[run.state].tone}
          title={`${exact(run.scheduled_for)}: ${RUNS[run.state].word}${run.reason ? `, ${run.reason}` : ""}${run.manual ? " (by hand)" : ""}`}
        >
          {RUNS[run.state].mark}
        </span>
      ))}
    </span>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "name",
    title: "Job",
    cell: ({ job }) => (
      <span title={job.intent}>
        {job.failures > 0 && (
          <span className={classes.cellTone} data-tone="alert" title={`${job.failures} runs in a row failed`}>
            ×{job.failures}{" "}
          </span>
        )}
        {job.name}
      </span>
    ),
  },
  { id: "target", title: "To", width: "15%", from: 640, cell: ({ job }) => targetSaid(job.target) },
  {
    id: "schedule",
    title: "When",
    width: "26%",
    from: 520,
    cell: ({ job }) => <span title={`${job.cron ?? job.at} (${job.zone})`}>{scheduleSaid(job)}</span>,
  },
  { id: "next", title: "Next", width: 84, cell: ({ job }) => <Next job={job} /> },
  {
    id: "runs",
    title: "Last runs",
    width: 176,
    from: 420,
    cell: ({ recent }) =>
      recent ? <Marks runs={recent} most={14} /> : <span className={classes.faint}>open it to see them</span>,
  },
  {
    id: "state",
    title: "State",
    width: 88,
    cell: ({ job }) => (
      <Tag tone={STATES[job.state].tone}>
        {STATES[job.state].mark} {STATES[job.state].word}
      </Tag>
    ),
  },
];
