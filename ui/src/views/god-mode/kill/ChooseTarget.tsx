// What to stop and why, with a preview of the agents that would pause and that stay. Scope and target are in
// the URL.
import { Button, NativeSelect, SegmentedControl, Textarea } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { noun } from "~/plural";
import type { AgentItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "../God.module.css";
import {
  counted,
  faultOf,
  type KillTarget,
  parseTarget,
  previewOf,
  type Scope,
  targetText,
} from "./engageSteps";

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
  onArm: (meant: KillTarget) => void;
}

export function ChooseTarget({ reason, busy, onReason, onArm }: Props) {
  const [url, setUrl] = useUrl();
  const meant = parseTarget(url.scope, url.target);
  const query = useApi("/v1/agents", undefined, { every: 10_000, keep: true });
  const denied = useWhyNot("admin");
  const fault = faultOf(meant, reason);
  const choices = useMemo(() => {
    const items = query.data?.items ?? [];
    return counted(items, NAMES_OF[meant.scope]);
  }, [query.data, meant.scope]);
  const isListed = choices.some(([name]) => name === meant.target);
  return (
    <div className={classes.choose}>
      <div className={classes.row}>
        <SegmentedControl
          size="xs"
          aria-label="Scope"
          data={[
            { value: "global", label: "Everything" },
            { value: "class", label: "Agent type" },
            { value: "cluster", label: "Cluster" },
            { value: "agent", label: "Agent" },
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
            <option value="">select…</option>
            {meant.target && !isListed && (
              <option value={meant.target}>{meant.target} (no agents now)</option>
            )}
            {choices.map(([name, count]) => (
              <option key={name} value={name}>
                {name} ({count})
              </option>
            ))}
          </NativeSelect>
        )}
      </div>
      <Loaded query={query} rows={3}>
        {({ items }) => <Effect meant={meant} agents={items} />}
      </Loaded>
      <Textarea
        size="xs"
        label="Reason"
        description="Shown to everyone on every page while engaged, and recorded in the audit trail."
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
          Arm
        </Button>
        <span className={classes.faint}>
          {denied ?? fault ?? "Stops nothing yet: two typed confirmations follow."}
        </span>
      </div>
    </div>
  );
}

function Effect({ meant, agents }: { meant: KillTarget; agents: readonly AgentItem[] }) {
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
              <b className={classes.figure}>{pauses.length}</b> {noun(pauses.length, "agent")},{" "}
              {targetText(meant)}
              {evicted > 0 && ` (${evicted} of them evicted)`}. Their messages are archived and held; nothing
              is lost.
            </p>
            {meant.scope === "class" || pauses.length <= NAMED ? (
              <Names names={pauses.map((one) => one.agent_id)} />
            ) : (
              <Names names={kinds.map(([kind, count]) => `${kind} ${count}`)} />
            )}
          </>
        ) : (
          <p>Select a target.</p>
        )}
      </section>
      <section aria-label="What keeps running">
        <h3>
          <span aria-hidden>▸</span> Stays
        </h3>
        <p>
          Heartbeats, decisions, your commands, system events and the audit trail continue
          {stays.length > 0 && (
            <>
              ; so {noun(stays.length, "does", "do")} <b>{stays.length}</b> {noun(stays.length, "agent")}
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
