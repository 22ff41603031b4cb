// The version registry of one type: N and N-1 are accepted, others with a warning or not at all. Every change
// shows beforehand whose messages it will refuse.
import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { setVersions } from "~/commands/registry";
import { plural } from "~/plural";
import type { AgentItem, VersionRow } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import {
  faultOf,
  makeCurrent,
  makePrevious,
  refusedBy,
  refusedSentence,
  registered,
  retire,
  STATUSES,
  type Version,
  versionsOf,
} from "../versions";
import classes from "./Detail.module.css";

interface Asking {
  says: string;
  button: string;
  done: string;
  next: VersionRow[];
  /** The list it was based on: it may have changed before confirmation. */
  before: VersionRow[];
  harm: boolean;
}

export function Versions({ agent_type, agents }: { agent_type: string; agents: readonly AgentItem[] }) {
  const query = useApi("/v1/versions", { agent_type }, { every: 5_000, keep: true });
  return (
    <Panel title="Versions" aside="N and N-1 are accepted">
      <Loaded query={query}>
        {({ items }) => <Registry agent_type={agent_type} versions={versionsOf(items, agents)} />}
      </Loaded>
    </Panel>
  );
}

function Registry({ agent_type, versions }: { agent_type: string; versions: Version[] }) {
  const [asking, setAsking] = useState<Asking | null>(null);
  const [stale, setStale] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const run = async () => {
    if (!asking) return;
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason !== "stale_versions") return false;
      setStale("Someone else changed these versions. Yours was not saved; the list shows the saved ones.");
      refetch("/v1/versions");
      return true;
    };
    const answer = await setVersions(agent_type, asking.next, asking.before, asking.done, refused);
    setBusy(false);
    if (answer) setStale(null);
    setAsking(null);
  };
  const ask = (made: Omit<Asking, "harm" | "says" | "before"> & { says?: string }) => {
    const refused = refusedBy(made.next, versions);
    setStale(null);
    setAsking({
      ...made,
      says: `${made.says ? `${made.says} ` : ""}${refusedSentence(refused)} Every change is recorded.`,
      before: registered(versions),
      harm: refused.length > 0,
    });
  };
  return (
    <div className={classes.part}>
      {stale && (
        <p className={classes.trouble} role="alert">
          ! {stale}
        </p>
      )}
      {versions.length === 0 && <p className={classes.calm}>No versions registered or reported.</p>}
      <ul className={classes.versions} aria-label={`Versions of ${agent_type}`}>
        {versions.map((one) => (
          <VersionLine key={one.version} version={one} versions={versions} denied={denied} ask={ask} />
        ))}
      </ul>
      {asking && (
        <div className={classes.sure}>
          <p>{asking.says}</p>
          <div className={classes.buttons}>
            <Button
              size="compact-sm"
              color={asking.harm ? "red" : undefined}
              loading={busy}
              onClick={() => void run()}
            >
              {asking.button}
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setAsking(null)}>
              Cancel
            </Button>
          </div>
        </div>
      )}
      <NewVersion agent_type={agent_type} versions={versions} denied={denied} ask={ask} />
    </div>
  );
}

interface Asks {
  versions: Version[];
  denied: string | undefined;
  ask: (made: Omit<Asking, "harm" | "says" | "before"> & { says?: string }) => void;
}

function VersionLine({ version: one, versions, denied, ask }: Asks & { version: Version }) {
  const names = useNames();
  const sign = STATUSES[one.status];
  const name = one.version;
  return (
    <li>
      <span className={classes.version}>
        <b>{name}</b>{" "}
        <Tag tone={sign.tone}>
          <span title={sign.means}>
            {sign.mark} {sign.word}
          </span>
        </Tag>
      </span>
      <span className={classes.faint}>
        {plural(one.instances, "instance")}
        {one.updated_at && (
          <span title={one.updated_by ? `by ${names(one.updated_by)}` : undefined}>
            {" "}
            · <Ago at={one.updated_at} />
          </span>
        )}
      </span>
      <span className={classes.acts}>
        {one.status !== "current" && (
          <Button
            size="compact-xs"
            variant="default"
            disabled={denied !== undefined}
            title={denied}
            onClick={() =>
              ask({
                says: `${name} becomes N; the present N becomes N-1.`,
                button: `Promote ${name} to current`,
                done: `${name} is the current version.`,
                next: makeCurrent(versions, name),
              })
            }
          >
            Promote to current…<span className="unseen"> {name}</span>
          </Button>
        )}
        {(one.status === "unknown" || one.status === "retired") && (
          <Button
            size="compact-xs"
            variant="default"
            disabled={denied !== undefined}
            title={denied}
            onClick={() =>
              ask({
                says: `${name} becomes N-1.`,
                button: `Accept ${name} as N-1`,
                done: `${name} is accepted alongside the current version.`,
                next: makePrevious(versions, name),
              })
            }
          >
            Make N-1…<span className="unseen"> {name}</span>
          </Button>
        )}
        {one.status !== "retired" && (
          <Button
            size="compact-xs"
            variant="default"
            disabled={denied !== undefined}
            title={denied}
            onClick={() =>
              ask({
                button: `Retire ${name}, refuse its messages`,
                done: `${name} is retired: its messages are refused from now on.`,
                next: retire(versions, name),
              })
            }
          >
            Retire…<span className="unseen"> {name}</span>
          </Button>
        )}
      </span>
    </li>
  );
}

function NewVersion({ agent_type, versions, denied, ask }: Asks & { agent_type: string }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  return (
    <form
      className={classes.add}
      onSubmit={(event) => {
        event.preventDefault();
        const found = faultOf(text, versions);
        setFault(found);
        if (found) return;
        const name = text.trim();
        ask({
          says: `${name} becomes N of ${agent_type}; the present N becomes N-1.`,
          button: `Register ${name} as current`,
          done: `${name} is the current version of ${agent_type}.`,
          next: makeCurrent(versions, name),
        });
        setText("");
      }}
    >
      <TextInput
        size="xs"
        aria-label="New version"
        placeholder="v2.1.0"
        value={text}
        error={fault}
        disabled={denied !== undefined}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setFault(null);
        }}
      />
      <Button type="submit" size="xs" variant="default" disabled={denied !== undefined} title={denied}>
        Register…
      </Button>
    </form>
  );
}
