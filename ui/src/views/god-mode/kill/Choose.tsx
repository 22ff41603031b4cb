// What shall stop and why, and beforehand who would pause and what stays. Scope and target are in the address.
import { Button, NativeSelect, SegmentedControl, Textarea } from "@mantine/core";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { AgentItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import classes from "../God.module.css";
import { counted, faultOf, type Meant, previewOf, readMeant, type Scope, whatOf } from "./throwing";

const NAMED = 18;

/** What can be chosen in each scope. */
const NAMES_OF: Record<Scope, (one: AgentItem) => string | null> = {
  global: () => null,
  class: (one) => one.agent_type,
  cluster: (one) => one.cluster_id,
  agent: (one) => one.agent_id,
};

interface Props {
  reason: string;
  busy: boolean;
  onReason: (reason: string) => void;
  onArm: (meant: Meant) => void;
}

export function Choose({ reason, busy, onReason, onArm }: Props) {
  const [url, setUrl] = useUrl();
  const meant = readMeant(url.scope, url.target);
  const asked = useAnswer("/v1/agents", undefined, { every: 10_000, keep: true });
  const denied = useWhyNot("admin");
  const fault = faultOf(meant, reason);
  const choices = useMemo(() => {
    const items = asked.data?.items ?? [];
    return counted(items, NAMES_OF[meant.scope]);
  }, [asked.data, meant.scope]);
  const isListed = choices.some(([name]) => name === meant.target);
  return (
    <div className={classes.choose}>
      <div className={classes.row}>
        <SegmentedControl
          size="xs"
          aria-label="What shall stop"
          data={[
            { value: "global", label: "Everything" },
            { value: "class", label: "A class" },
            { value: "cluster", label: "A cluster" },
            { value: "agent", label: "An agent" },
          ]}
          value={meant.scope}
          onChange={(scope) => setUrl({ scope: scope === "global" ? null : (scope as Scope), target: null })}
        />
        {meant.scope !== "global" && (
          <NativeSelect
            size="xs"
            aria-label={`Which ${meant.scope}`}
            value={meant.target}
            onChange={(event) => setUrl({ target: event.currentTarget.value })}
          >
            <option value="">which?</option>
            {meant.target && !isListed && <option value={meant.target}>{meant.target} (nobody now)</option>}
            {choices.map(([name, count]) => (
              <option key={name} value={name}>
                {name} ({count})
              </option>
            ))}
          </NativeSelect>
        )}
      </div>
      <Shown asked={asked} rows={3}>
        {({ items }) => <Effect meant={meant} agents={items} />}
      </Shown>
      <Textarea
        size="xs"
        label="Why"
        description="Everybody sees it on every page while it holds; the record keeps it."
        placeholder="pays invoices twice"
        autosize
        minRows={2}
        maxRows={6}
        value={reason}
        onChange={(event) => onReason(event.currentTarget.value)}
      />
      <div className={classes.buttons}>
        <Button
          color="red"
          loading={busy}
          disabled={denied !== undefined || fault !== null}
          title={denied ?? fault ?? undefined}
          onClick={() => onArm(meant)}
        >
          Arm it, stop nothing yet
        </Button>
        <span className={classes.faint}>{denied ?? fault ?? "Two typed confirmations follow."}</span>
      </div>
    </div>
  );
}

function Effect({ meant, agents }: { meant: Meant; agents: readonly AgentItem[] }) {
  const { pauses, stays, kinds, evicted } = useMemo(() => previewOf(meant, agents), [meant, agents]);
  const isChosen = meant.scope === "global" || meant.target !== "";
  return (
    <div className={classes.effect}>
      <section aria-label="What will pause">
        <h3>
          <span aria-hidden>■</span> Pauses
        </h3>
        {isChosen ? (
          <>
            <p>
              <b className={classes.figure}>{pauses.length}</b> {pauses.length === 1 ? "agent" : "agents"},{" "}
              {whatOf(meant)}
              {evicted > 0 && ` (${evicted} of them evicted)`}. What they send is archived and held, nothing
              is lost.
            </p>
            {meant.scope === "class" || pauses.length <= NAMED ? (
              <Names names={pauses.map((one) => one.agent_id)} />
            ) : (
              <Names names={kinds.map(([kind, count]) => `${kind} ${count}`)} />
            )}
          </>
        ) : (
          <p>Nothing yet: choose which.</p>
        )}
      </section>
      <section aria-label="What stays">
        <h3>
          <span aria-hidden>▸</span> Stays
        </h3>
        <p>
          Heartbeats, decisions, your commands, system events and the record go on
          {stays.length > 0 && (
            <>
              ; so {stays.length === 1 ? "does" : "do"} <b>{stays.length}</b>{" "}
              {stays.length === 1 ? "agent" : "agents"}
            </>
          )}
          .
        </p>
        {stays.length > 0 && isChosen && (
          <Names
            names={counted(stays, (one) => one.agent_type ?? "without a type").map(
              ([kind, count]) => `${kind} ${count}`,
            )}
          />
        )}
      </section>
    </div>
  );
}

export function Names({ names }: { names: readonly string[] }) {
  const more = names.length - NAMED;
  return (
    <p className={classes.names}>
      {names.slice(0, NAMED).map((name) => (
        <code key={name}>{name}</code>
      ))}
      {more > 0 && <span title={names.slice(NAMED).join(", ")}>and {more} more</span>}
    </p>
  );
}
