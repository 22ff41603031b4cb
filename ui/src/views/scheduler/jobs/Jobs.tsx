// All jobs: target, schedule in plain words, next run, results of the last runs; and next to them the
// selected one, or the form for a new one.
import { Button, CloseButton, SegmentedControl, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { noun, plural } from "~/plural";
import type { JobItem, RecentRun } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "../Scheduler.module.css";
import { binsFor, windowOf } from "../timeline/strip";
import { useJobs } from "../useSchedule";
import { Job } from "./Job";
import { JobForm } from "./JobForm";
import { pick, RUNS, readShown, STATES, scheduleText, targetText, until } from "./jobText";

export const NEW = "new";

interface Row {
  job: JobItem;
  /** Undefined if not loaded: for reminders, and for jobs beyond the newest hundred. */
  recent: readonly RecentRun[] | undefined;
}

export function Jobs() {
  const [url, setUrl] = useUrl();
  const shown = readShown(url);
  const query = useJobs(shown.reminders);
  const recent = useRecent(url.window);
  const { q, state } = shown;
  const rows = useMemo(
    (): Row[] =>
      pick(query.data?.items ?? [], { q, state }).map((job) => ({ job, recent: recent[job.job_id] })),
    [query.data, q, state, recent],
  );
  const denied = useWhyNot("operate");
  const search = useSearchText(q, (next) => setUrl({ q: next }, true));
  const empty = query.data?.items.length === 0 && !shown.reminders;
  const total = query.data?.items.length ?? 0;
  return (
    <div className={classes.split} data-alone={url.job === undefined || undefined}>
      <div className={classes.main}>
        <search className={classes.bar} aria-label="Filter the jobs">
          <TextInput
            size="xs"
            type="text"
            className={classes.search}
            aria-label="Search jobs by name, target, schedule"
            placeholder="name, target, schedule"
            value={search.text}
            onChange={(event) => search.type(event.currentTarget.value)}
            rightSection={
              search.text && (
                <CloseButton
                  size="xs"
                  aria-label="Clear search"
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
            aria-label="Kind"
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
        {query.data && rows.length > 0 && (
          <Grid
            label={shown.reminders ? "Reminders" : "Jobs"}
            columns={COLUMNS}
            rows={rows}
            keyOf={keyOf}
            current={url.job}
            onOpen={({ job }) => setUrl({ job: job.job_id, edit: null })}
          />
        )}
        {!query.data && query.error && <ErrorNotice problem={query.error} again={() => query.refetch()} />}
        {!query.data && !query.error && <Loading rows={6} />}
        {empty && (
          <Empty
            command={
              'observatory jobs add morning-check --cron "0 9 * * 1-5" --to AGENT --intent "Check the canary"'
            }
          >
            No jobs yet. A job sends a message to an agent, a type or a cluster on a schedule. Create one with
            New job…, or:
          </Empty>
        )}
        {shown.reminders && total === 0 && query.data && (
          <Empty command={'session.remind(in_s=3600, payload={"check": "the error rate"})'}>
            No reminders. An agent sets one in its own session:
          </Empty>
        )}
        {query.data && total > 0 && (
          <p className={classes.foot} role="status">
            {query.error && <span className={classes.stale}>Not up to date: {query.error.message}</span>}
            <span>
              {rows.length === total ? total : `${rows.length} of ${total}`}{" "}
              {shown.reminders ? "reminders" : noun(total, "job")}
              {query.data.more && " or more"}
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
        <aside className={classes.aside} aria-label="Selected job" tabIndex={-1}>
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

/** The last runs of each job; shares the timeline's response. */
function useRecent(window: string | undefined): Record<string, readonly RecentRun[]> {
  const hours = Number(windowOf(window));
  // Independent of the bin width the strip requested, its runs are the same.
  const query = useApi("/v1/jobs/timeline", { hours, bins: binsFor(1_000) }, { keep: true, every: 4_000 });
  return useMemo(
    () => Object.fromEntries((query.data?.lanes ?? []).map((lane) => [lane.job_id, lane.recent])),
    [query.data],
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
        last {plural(shown.length, "run")}, {failed} failed
      </span>
      {shown.map((run) => (
        <span
          key={run.scheduled_for}
          aria-hidden
          data-tone={RUNS[run.state].tone}
          title={`${exact(run.scheduled_for)}: ${RUNS[run.state].word}${run.reason ? `, ${run.reason}` : ""}${run.manual ? " (manual)" : ""}`}
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
  { id: "target", title: "To", width: "15%", from: 640, cell: ({ job }) => targetText(job.target) },
  {
    id: "schedule",
    title: "When",
    width: "26%",
    from: 520,
    cell: ({ job }) => <span title={`${job.cron ?? job.at} (${job.zone})`}>{scheduleText(job)}</span>,
  },
  { id: "next", title: "Next", width: 84, cell: ({ job }) => <Next job={job} /> },
  {
    id: "runs",
    title: "Last runs",
    width: 176,
    from: 420,
    cell: ({ recent }) =>
      recent ? <Marks runs={recent} most={14} /> : <span className={classes.faint}>open to see them</span>,
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
