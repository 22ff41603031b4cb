// The traffic split of one capability, changed by bar, slider or number, with a preview over the last hour's
// traffic before anything is saved.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { setTrafficSplit } from "~/commands/registry";
import type { RouteItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Loaded, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import type { Group } from "../registryRows";
import {
  byInstances,
  type Draft,
  draftOf,
  effectOf,
  hourOf,
  isSame,
  percent,
  preview,
  readDraft,
  sumSentence,
  type Weights,
  weightsText,
} from "../weights";
import { AddTarget } from "./AddTarget";
import classes from "./Detail.module.css";
import { Preview } from "./Preview";
import { SplitBar } from "./SplitBar";
import { TargetLine } from "./TargetLine";

export function Routing({ group }: { group: Group }) {
  const query = useApi("/v1/routes", undefined, { every: 5_000, keep: true });
  return (
    <Panel title="Traffic weights">
      <Loaded query={query}>
        {({ items }) => (
          <Manager group={group} route={items.find((one) => one.capability === group.name) ?? null} />
        )}
      </Loaded>
    </Panel>
  );
}

interface KeptDraft {
  draft: Draft;
  was: Weights;
}

/** The unsaved draft, kept while other pages are open; null if none. */
function useKept(name: string): [KeptDraft | null, (kept: KeptDraft | null) => void] {
  const [text, setText] = useDraft(`weights ${name}`);
  const kept = useMemo(() => (text === null ? null : (JSON.parse(text) as KeptDraft)), [text]);
  return [kept, (next) => setText(next === null ? null : JSON.stringify(next))];
}

function Manager({ group, route }: { group: Group; route: RouteItem | null }) {
  const saved = route?.weights ?? null;
  const [kept, setKept] = useKept(group.name);
  const denied = useWhyNot("operate");
  const begin = (weights: Weights) => setKept({ draft: draftOf(weights), was: saved ?? {} });
  if (kept)
    return (
      <Editor
        group={group}
        saved={saved}
        kept={kept}
        set={(draft) => setKept({ ...kept, draft })}
        rebase={(next) => setKept(next)}
        end={() => setKept(null)}
      />
    );
  const effect = effectOf(saved, group.agents);
  return (
    <div className={classes.part}>
      {saved ? (
        <SplitBar
          label={`Traffic split of ${group.name}`}
          parts={Object.entries(saved).map(([target]) => ({
            target,
            share: effect.targets[target] ?? 0,
          }))}
        />
      ) : (
        <p className={classes.says}>
          No weights: work for <code>type:{group.name}</code> is routed round-robin across healthy instances
          {Object.keys(effect.agents).length > 0 &&
            `, ${percent(1 / Object.keys(effect.agents).length)} each`}
          .
        </p>
      )}
      {route && <Changed route={route} />}
      {effect.notes.map((note) => (
        <p key={note} className={classes.note}>
          ! {note}
        </p>
      ))}
      <div className={classes.buttons}>
        <Button
          size="compact-sm"
          variant={saved ? "default" : "filled"}
          disabled={denied !== undefined}
          title={denied}
          onClick={() => begin(saved ?? byInstances(group.agents))}
        >
          {saved ? "Change weights…" : "Set traffic split…"}
        </Button>
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
    </div>
  );
}

function Changed({ route }: { route: RouteItem }) {
  const names = useNames();
  return (
    <p className={classes.faint}>
      set <Ago at={route.updated_at} /> by {names(route.updated_by)}
    </p>
  );
}

interface Editing {
  group: Group;
  saved: Weights | null;
  kept: KeptDraft;
  set: (draft: Draft) => void;
  rebase: (kept: KeptDraft) => void;
  end: () => void;
}

function Editor({ group, saved, kept: { draft, was }, set, rebase, end }: Editing) {
  const [busy, setBusy] = useState(false);
  const edges = useApi("/v1/edges", undefined, { every: 15_000, keep: true });
  const read = readDraft(draft);
  const hour = useMemo(() => hourOf(edges.data?.items ?? [], group.agents), [edges.data, group.agents]);
  const lines = read.weights ? preview(saved, read.weights, group.agents, hour) : [];
  const notes = read.weights ? effectOf(read.weights, group.agents).notes : [];
  const theirs = !isSame(was, saved ?? {});
  const unchanged = read.weights !== null && isSame(read.weights, saved ?? {});
  const sum = sumSentence(read);
  const save = async () => {
    if (!read.weights) return;
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason !== "stale_weights") return false;
      refetch("/v1/routes");
      return true;
    };
    const answer = await setTrafficSplit(group.name, read.weights, was, refused);
    setBusy(false);
    if (answer) end();
  };
  return (
    <form
      className={classes.part}
      aria-label={`Weights of ${group.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {theirs && (
        <div className={classes.trouble} role="alert">
          <p>
            ! Someone else changed these weights. They are now {saved ? weightsText(saved) : "none"}; yours
            are not saved.
          </p>
          <div className={classes.buttons}>
            <Button size="compact-sm" variant="default" onClick={() => rebase({ draft, was: saved ?? {} })}>
              Overwrite with mine
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => (saved ? rebase({ draft: draftOf(saved), was: saved }) : end())}
            >
              Use theirs
            </Button>
          </div>
        </div>
      )}
      {read.weights && (
        <SplitBar
          label="New split; drag a border"
          parts={Object.entries(read.weights).map(([target, weight]) => ({
            target,
            share: weight / read.sum,
          }))}
          draft={draft}
          onMove={set}
        />
      )}
      <ul className={classes.targets}>
        {Object.entries(draft).map(([target, text]) => (
          <TargetLine
            key={target}
            target={target}
            text={text}
            fault={read.faults[target]}
            agents={group.agents}
            set={(next) => set({ ...draft, [target]: next })}
            remove={() => set(Object.fromEntries(Object.entries(draft).filter(([name]) => name !== target)))}
          />
        ))}
      </ul>
      <AddTarget
        agents={group.agents}
        named={Object.keys(draft)}
        add={(target) => set({ ...draft, [target]: "0" })}
        even={() => set(draftOf(byInstances(group.agents)))}
      />
      {read.fault && (
        <p className={classes.trouble} role="alert">
          ! {read.fault}
        </p>
      )}
      {sum && (
        <p className={classes.note} role="status">
          {sum}
        </p>
      )}
      {read.weights && <Preview lines={lines} total={hour.total} query={!edges.isPending} />}
      {notes.map((note) => (
        <p key={note} className={classes.note}>
          ! {note}
        </p>
      ))}
      <div className={classes.buttons}>
        <Button
          type="submit"
          size="compact-sm"
          className={classes.wraps}
          loading={busy}
          disabled={read.weights === null || unchanged || theirs}
          title={read.fault ?? (unchanged ? "No changes" : theirs ? "Resolve the conflict first" : undefined)}
        >
          {read.weights && !unchanged ? `Save: ${weightsText(read.weights)}` : "Save"}
        </Button>
        <Button size="compact-sm" variant="default" onClick={end}>
          Discard changes
        </Button>
      </div>
    </form>
  );
}
