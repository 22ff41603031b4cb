// The Routing Logic Manager of one capability: how its work is shared out, changed by the bar, by slider or by
// number, with what the change will do over the last hour's traffic shown before anything is saved.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { shareOut } from "~/acts/registry";
import type { Problem } from "~/api/client";
import { askAgain, useAnswer } from "~/api/questions";
import type { RouteItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Panel, Shown } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import type { Group } from "../pages";
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
  saying,
  sumSentence,
  type Weights,
} from "../weights";
import { AddTarget } from "./AddTarget";
import classes from "./Detail.module.css";
import { Preview } from "./Preview";
import { SplitBar } from "./SplitBar";
import { TargetLine } from "./TargetLine";

export function Routing({ group }: { group: Group }) {
  const asked = useAnswer("/v1/routes", undefined, { every: 5_000, keep: true });
  return (
    <Panel title="Traffic weights">
      <Shown asked={asked}>
        {({ items }) => (
          <Manager group={group} route={items.find((one) => one.capability === group.name) ?? null} />
        )}
      </Shown>
    </Panel>
  );
}

interface Kept {
  draft: Draft;
  was: Weights;
}

/** What is being changed, kept when one looks elsewhere; null while nothing is. */
function useKept(name: string): [Kept | null, (kept: Kept | null) => void] {
  const [text, setText] = useDraft(`weights ${name}`);
  const kept = useMemo(() => (text === null ? null : (JSON.parse(text) as Kept)), [text]);
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
          label={`How work for ${group.name} is shared out`}
          parts={Object.entries(saved).map(([target]) => ({
            target,
            share: effect.targets[target] ?? 0,
          }))}
        />
      ) : (
        <p className={classes.says}>
          No weights: work for <code>type:{group.name}</code> goes evenly to the liveliest instances
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
          {saved ? "Change the weights…" : "Share out by cluster…"}
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
  kept: Kept;
  set: (draft: Draft) => void;
  rebase: (kept: Kept) => void;
  end: () => void;
}

function Editor({ group, saved, kept: { draft, was }, set, rebase, end }: Editing) {
  const [busy, setBusy] = useState(false);
  const edges = useAnswer("/v1/edges", undefined, { every: 15_000, keep: true });
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
      askAgain("/v1/routes");
      return true;
    };
    const answer = await shareOut(group.name, read.weights, was, refused);
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
            ! Somebody changed these weights while you did. Now they are {saved ? saying(saved) : "none"}, and
            yours are not saved.
          </p>
          <div className={classes.buttons}>
            <Button size="compact-sm" variant="default" onClick={() => rebase({ draft, was: saved ?? {} })}>
              Go on with mine, over theirs
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => (saved ? rebase({ draft: draftOf(saved), was: saved }) : end())}
            >
              Take theirs
            </Button>
          </div>
        </div>
      )}
      {read.weights && (
        <SplitBar
          label="The new split; a border can be dragged"
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
      {read.weights && <Preview lines={lines} total={hour.total} asked={!edges.isPending} />}
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
          title={
            read.fault ??
            (unchanged
              ? "These are the weights that are saved"
              : theirs
                ? "Decide about theirs first"
                : undefined)
          }
        >
          {read.weights && !unchanged ? `Save: ${saying(read.weights)}` : "Save"}
        </Button>
        <Button size="compact-sm" variant="default" onClick={end}>
          Throw the changes away
        </Button>
      </div>
    </form>
  );
}
