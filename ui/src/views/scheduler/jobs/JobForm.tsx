// A job made or changed. What is typed is kept until it is saved or thrown away, whatever happens meanwhile: a
// sign-in that ended, another job looked at, somebody who was faster.

import { Autocomplete, SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { changeJob, createJob } from "~/acts/jobs";
import type { Problem } from "~/api/client";
import { askAgain, useAnswer } from "~/api/questions";
import { ZONE } from "~/locale";
import type { JobItem } from "~/protocol/openapi";
import { Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { SaveButtons, Theirs, useKept } from "../kept";
import classes from "../Scheduler.module.css";
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
import { When } from "./When";

interface Props {
  job: JobItem | null;
  /** Removed by somebody while it was being changed. */
  gone?: boolean;
  end: (made?: JobItem) => void;
}

export function JobForm({ job, gone = false, end }: Props) {
  const [{ draft, was }, keep] = useKept(`job ${job?.job_id ?? "new"}`, job, draftOf, () => fresh(ZONE));
  const [tried, setTried] = useState(false);
  const [told, setTold] = useState<Faults>({});
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const { body, faults } = read(draft);
  const shown: Faults = { ...(tried ? faults : {}), ...told };
  const theirs = job !== null && was !== null && was !== job.updated_at;
  const set = (changes: Partial<Draft>) => {
    const left = { ...told };
    for (const name of Object.keys(changes) as (keyof Draft)[]) delete left[name];
    setTold(left);
    keep({ draft: { ...draft, ...changes }, was });
  };
  const save = async () => {
    setTried(true);
    if (!body) return;
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason === "stale") {
        askAgain("/v1/jobs");
        return true;
      }
      const field = fieldOf(problem.reason, problem.message);
      if (field) setTold({ [field]: problem.message });
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
    <Panel title={job ? `Change ${job.name}` : "A new job"} label={job ? "Change the job" : "A new job"}>
      <form
        className={classes.part}
        aria-label={job ? "Change the job" : "A new job"}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {theirs && job && <Theirs what="job" thing={job} mine={draft} theirs={draftOf(job)} keep={keep} />}
        {gone && (
          <p className={classes.trouble} role="alert">
            ! Somebody removed this job meanwhile. What you typed is kept here; copy it into a new job.
          </p>
        )}
        <TextInput label="Name" placeholder="morning-check" {...give("name")} />
        <SegmentedControl
          size="xs"
          aria-label="How often"
          data={[
            { value: "cron", label: "Again and again" },
            { value: "once", label: "Once" },
          ]}
          value={draft.kind}
          onChange={(kind) => set({ kind: kind as Draft["kind"] })}
        />
        {draft.kind === "cron" ? (
          <When cron={draft.cron} zone={draft.zone} set={set} faults={shown} />
        ) : (
          <TextInput
            type="datetime-local"
            label="At (your clock); a moment that is over fires at once"
            {...give("at")}
          />
        )}
        <Target draft={draft} set={set} fault={shown.target_name} />
        <TextInput label="Intent: what is to be done" placeholder="Check the canary" {...give("intent")} />
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
          <summary>When it is late, at work or refused</summary>
          <More draft={draft} set={set} give={give} />
        </details>
        {tried && !body && (
          <p className={classes.trouble} role="alert">
            ! Not saved: {Object.keys(faults).length === 1 ? "one field is" : "some fields are"} not right
            yet.
          </p>
        )}
        <SaveButtons
          does={job ? "Save the change" : "Put it on the schedule"}
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
  const agents = useAnswer("/v1/agents", undefined, { keep: true });
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
            { value: "capability", label: "whoever of a type" },
            { value: "agent", label: "one agent" },
            { value: "cluster", label: "somebody of a cluster" },
          ]}
          allowDeselect={false}
          value={draft.target_kind}
          onChange={(kind) => set({ target_kind: (kind ?? "capability") as TargetKind })}
        />
        <Autocomplete
          size="xs"
          label="Named"
          data={known}
          limit={30}
          value={draft.target_name}
          error={fault}
          onChange={(target_name) => set({ target_name })}
        />
      </div>
      {named && agents.data && !known.includes(named) && (
        <p className={classes.note}>Nobody here is called so yet: what it sends waits until somebody is.</p>
      )}
    </>
  );
}

function More({ draft, set, give }: Part & { give: (name: keyof Draft) => object }) {
  return (
    <div className={classes.pair}>
      <Select
        size="xs"
        label="When it was missed"
        data={[
          { value: "run_once", label: "make up for the newest" },
          { value: "skip", label: "leave it out" },
          { value: "run_all", label: "make up for all" },
        ]}
        allowDeselect={false}
        value={draft.misfire}
        onChange={(value) => set({ misfire: (value ?? "run_once") as Draft["misfire"] })}
      />
      <Select
        size="xs"
        label="While the one before is at work"
        data={[
          { value: "allow", label: "send all the same" },
          { value: "skip", label: "leave it out" },
          { value: "queue", label: "put it in line" },
        ]}
        allowDeselect={false}
        value={draft.overlap}
        onChange={(value) => set({ overlap: (value ?? "allow") as Draft["overlap"] })}
      />
      <TextInput label="Tries" inputMode="numeric" {...give("max_tries")} />
      <TextInput label="Jitter, s" inputMode="numeric" {...give("jitter_s")} />
      <TextInput label="On time within, s" inputMode="numeric" {...give("grace_s")} />
      <TextInput label="Speaks in session" placeholder="a new one each time" {...give("session_id")} />
    </div>
  );
}
