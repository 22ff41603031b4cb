// Form to create or change a job. Input is kept until it is saved or discarded, whatever happens in between:
// an expired sign-in, another job opened, a concurrent change.

import { Autocomplete, SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { changeJob, createJob } from "~/commands/jobs";
import { ZONE } from "~/locale";
import { plural } from "~/plural";
import type { JobItem } from "~/protocol/openapi";
import { Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { SaveButtons, Theirs, useFormDraft } from "../formDraft";
import classes from "../Scheduler.module.css";
import { CronField } from "./CronField";
import {
  bodyOf,
  type Draft,
  draftOf,
  type Faults,
  fieldOf,
  fresh,
  isOver,
  read,
  type TargetKind,
} from "./form";

interface Props {
  job: JobItem | null;
  /** Removed by someone else while it was being edited. */
  gone?: boolean;
  end: (made?: JobItem) => void;
}

export function JobForm({ job, gone = false, end }: Props) {
  const [{ draft, was }, keep] = useFormDraft(`job ${job?.job_id ?? "new"}`, job, draftOf, () => fresh(ZONE));
  const [tried, setTried] = useState(false);
  const [refusals, setRefusals] = useState<Faults>({});
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const { body, faults } = read(draft);
  const shown: Faults = { ...(tried ? faults : {}), ...refusals };
  const theirs = job !== null && was !== null && was !== job.updated_at;
  const set = (changes: Partial<Draft>) => {
    const left = { ...refusals };
    for (const name of Object.keys(changes) as (keyof Draft)[]) delete left[name];
    setRefusals(left);
    keep({ draft: { ...draft, ...changes }, was });
  };
  const save = async () => {
    setTried(true);
    if (!body) return;
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason === "stale") {
        refetch("/v1/jobs");
        return true;
      }
      const field = fieldOf(problem.reason, problem.message);
      if (field) setRefusals({ [field]: problem.message });
      return field !== null;
    };
    const done =
      job === null
        ? await createJob(body, refused)
        : await changeJob(job.job_id, body, was ?? job.updated_at, isOver(job) ? null : bodyOf(job), refused);
    setBusy(false);
    if (!done) return;
    keep(null);
    end(done);
  };
  const give = (name: keyof Draft) => ({
    size: "xs" as const,
    value: draft[name],
    error: shown[name],
    onChange: (event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      set({ [name]: event.currentTarget.value }),
  });
  return (
    <Panel title={job ? `Change ${job.name}` : "New job"} label={job ? "Change job" : "New job"}>
      <form
        className={classes.part}
        aria-label={job ? "Change job" : "New job"}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {theirs && job && <Theirs what="job" thing={job} mine={draft} theirs={draftOf(job)} keep={keep} />}
        {gone && (
          <p className={classes.trouble} role="alert">
            ! This job was removed by someone else. Your input is kept here; copy it into a new job.
          </p>
        )}
        <TextInput label="Name" placeholder="morning-check" {...give("name")} />
        <SegmentedControl
          size="xs"
          aria-label="Schedule type"
          data={[
            { value: "cron", label: "Recurring" },
            { value: "once", label: "Once" },
          ]}
          value={draft.kind}
          onChange={(kind) => set({ kind: kind as Draft["kind"] })}
        />
        {draft.kind === "cron" ? (
          <CronField cron={draft.cron} zone={draft.zone} set={set} faults={shown} />
        ) : (
          <TextInput
            type="datetime-local"
            label="At (local time); a past time runs at once"
            {...give("at")}
          />
        )}
        <Target draft={draft} set={set} fault={shown.target_name} />
        <TextInput label="Intent" placeholder="Check the canary" {...give("intent")} />
        <Textarea
          label="Payload (JSON)"
          autosize
          minRows={2}
          maxRows={8}
          spellCheck={false}
          classNames={{ input: "mono" }}
          {...give("payload")}
        />
        <details className={classes.more}>
          <summary>Misfire, overlap and retries</summary>
          <More draft={draft} set={set} give={give} />
        </details>
        {tried && !body && (
          <p className={classes.trouble} role="alert">
            ! Not saved: fix {plural(Object.keys(faults).length, "field")}
            yet.
          </p>
        )}
        <SaveButtons
          does={job ? "Save" : "Create job"}
          busy={busy}
          denied={denied}
          waits={theirs}
          throwAway={() => {
            keep(null);
            end();
          }}
        />
      </form>
    </Panel>
  );
}

interface Part {
  draft: Draft;
  set: (changes: Partial<Draft>) => void;
}

function Target({ draft, set, fault }: Part & { fault: string | undefined }) {
  const agents = useApi("/v1/agents", undefined, { keep: true });
  const known = useMemo(() => {
    const items = agents.data?.items ?? [];
    const names = {
      agent: items.map((one) => one.agent_id),
      capability: items.flatMap((one) => [...(one.agent_type ? [one.agent_type] : []), ...one.capabilities]),
      cluster: items.flatMap((one) => (one.cluster_id ? [one.cluster_id] : [])),
    };
    return [...new Set(names[draft.target_kind])].sort();
  }, [agents.data, draft.target_kind]);
  const named = draft.target_name.trim();
  return (
    <>
      <div className={classes.pair}>
        <Select
          size="xs"
          label="To"
          data={[
            { value: "capability", label: "any agent of type" },
            { value: "agent", label: "one agent" },
            { value: "cluster", label: "any agent of cluster" },
          ]}
          allowDeselect={false}
          value={draft.target_kind}
          onChange={(kind) => set({ target_kind: (kind ?? "capability") as TargetKind })}
        />
        <Autocomplete
          size="xs"
          label="Target"
          data={known}
          limit={30}
          value={draft.target_name}
          error={fault}
          onChange={(target_name) => set({ target_name })}
        />
      </div>
      {named && agents.data && !known.includes(named) && (
        <p className={classes.note}>No such target yet; messages queue until one registers.</p>
      )}
    </>
  );
}

function More({ draft, set, give }: Part & { give: (name: keyof Draft) => object }) {
  return (
    <div className={classes.pair}>
      <Select
        size="xs"
        label="Misfire policy"
        data={[
          { value: "run_once", label: "Run latest missed" },
          { value: "skip", label: "Skip" },
          { value: "run_all", label: "Run all missed" },
        ]}
        allowDeselect={false}
        value={draft.misfire}
        onChange={(value) => set({ misfire: (value ?? "run_once") as Draft["misfire"] })}
      />
      <Select
        size="xs"
        label="Overlap policy"
        data={[
          { value: "allow", label: "Allow overlap" },
          { value: "skip", label: "Skip" },
          { value: "queue", label: "Queue" },
        ]}
        allowDeselect={false}
        value={draft.overlap}
        onChange={(value) => set({ overlap: (value ?? "allow") as Draft["overlap"] })}
      />
      <TextInput label="Attempts" inputMode="numeric" {...give("max_tries")} />
      <TextInput label="Jitter (s)" inputMode="numeric" {...give("jitter_s")} />
      <TextInput label="Grace period (s)" inputMode="numeric" {...give("grace_s")} />
      <TextInput label="Session" placeholder="a new one each time" {...give("session_id")} />
    </div>
  );
}
