// Form to create or change a trigger. Input is kept until it is saved or discarded.
import { Autocomplete, Checkbox, MultiSelect, Select, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { changeTrigger, createTrigger } from "~/commands/scaling";
import type { ConditionItem, RuleItem } from "~/protocol/openapi";
import { Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { SaveButtons, Theirs, useFormDraft } from "../formDraft";
import classes from "../Scheduler.module.css";
import { type Draft, draftOf, type Faults, FRESH, read } from "./triggers";

interface Props {
  rule: RuleItem | null;
  conditions: readonly ConditionItem[];
  end: (made?: RuleItem) => void;
}

export function TriggerForm({ rule, conditions, end }: Props) {
  const [{ draft, was }, keep] = useFormDraft(
    `trigger ${rule?.rule_id ?? "new"}`,
    rule,
    draftOf,
    () => FRESH,
  );
  const [tried, setTried] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [taken, setTaken] = useState(false);
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("admin");
  const { body, faults } = read(draft);
  const shown: Faults = {
    ...(tried ? faults : {}),
    ...(taken && { name: "A trigger with that name already exists." }),
  };
  const theirs = rule !== null && was !== null && was !== rule.updated_at;
  const condition = conditions.find((one) => one.condition === draft.condition);
  const set = (changes: Partial<Draft>) => {
    setRefusal(null);
    if ("name" in changes) setTaken(false);
    keep({ draft: { ...draft, ...changes }, was });
  };
  const save = async () => {
    setTried(true);
    if (!body) return;
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason === "stale") refetch("/v1/scaling-triggers");
      else if (problem.reason === "name_taken") setTaken(true);
      else if (problem.reason === "bad_rule" || problem.reason === "unknown_endpoint")
        setRefusal(problem.message);
      else return false;
      return true;
    };
    const done =
      rule === null
        ? await createTrigger(body, refused)
        : await changeTrigger(rule.rule_id, body, was ?? rule.updated_at, refused);
    setBusy(false);
    if (!done) return;
    keep(null);
    end(done);
  };
  const give = (name: "name" | "threshold" | "for_s" | "cooldown_s" | "amount") => ({
    size: "xs" as const,
    value: draft[name],
    error: shown[name],
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => set({ [name]: event.currentTarget.value }),
  });
  const title = rule ? "Change trigger" : "New trigger";
  return (
    <Panel title={rule ? `Change ${rule.name}` : title} label={title}>
      <form
        className={classes.part}
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {theirs && rule && (
          <Theirs what="trigger" thing={rule} mine={draft} theirs={draftOf(rule)} keep={keep} />
        )}
        <TextInput label="Name" placeholder="More coders" {...give("name")} />
        <Select
          size="xs"
          label="Condition"
          data={conditions.map((one) => ({ value: one.condition, label: one.text }))}
          allowDeselect={false}
          value={draft.condition}
          onChange={(next) => {
            const found = conditions.find((one) => one.condition === next);
            if (found)
              set({
                condition: found.condition,
                scope: found.scopes[0] ?? "tenant",
                threshold: String(found.threshold),
                compare: "above",
              });
          }}
        />
        <ScopeFields
          draft={draft}
          set={set}
          scopes={condition?.scopes ?? [draft.scope]}
          fault={shown.target}
        />
        <div className={classes.pair}>
          <Select
            size="xs"
            label="Comparison"
            data={[
              { value: "above", label: "at least" },
              { value: "below", label: "at most" },
            ]}
            allowDeselect={false}
            disabled={draft.condition === "breaker" || draft.condition === "silent_agents"}
            value={draft.compare}
            onChange={(compare) => set({ compare: (compare ?? "above") as Draft["compare"] })}
          />
          <TextInput
            label={`Threshold${condition?.unit ? `, ${condition.unit}` : ""}`}
            inputMode="decimal"
            {...give("threshold")}
          />
          <TextInput label="For (s)" inputMode="numeric" {...give("for_s")} />
        </div>
        <div className={classes.pair}>
          <Select
            size="xs"
            label="Suggestion"
            data={[
              { value: "up", label: "▲ more agents" },
              { value: "down", label: "▼ fewer agents" },
            ]}
            allowDeselect={false}
            value={draft.direction}
            onChange={(direction) => set({ direction: direction === "down" ? "down" : "up" })}
          />
          <TextInput label="Number of agents" inputMode="numeric" {...give("amount")} />
          <TextInput label="Cooldown (s)" inputMode="numeric" {...give("cooldown_s")} />
        </div>
        <NotificationsField draft={draft} set={set} />
        <Checkbox
          size="xs"
          label="Enabled"
          checked={draft.enabled}
          onChange={(event) => set({ enabled: event.currentTarget.checked })}
        />
        {(refusal || (tried && !body)) && (
          <p className={classes.trouble} role="alert">
            ! Not saved: {refusal ?? "fix the errors above."}
          </p>
        )}
        <SaveButtons
          does={rule ? "Save" : "Create trigger"}
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

const SCOPES: Partial<Record<Draft["scope"], string>> = {
  capability: "of a type",
  cluster: "of a cluster",
  agent: "of an agent",
  session: "of a session",
  tenant: "of the tenant",
};

function ScopeFields({
  draft,
  set,
  scopes,
  fault,
}: Part & { scopes: readonly Draft["scope"][]; fault: string | undefined }) {
  const agents = useApi("/v1/agents", undefined, { keep: true });
  const known = useMemo(() => {
    const items = agents.data?.items ?? [];
    const names: Partial<Record<Draft["scope"], (string | null)[]>> = {
      capability: items.map((one) => one.agent_type),
      cluster: items.map((one) => one.cluster_id),
      agent: items.map((one) => one.agent_id),
    };
    return [...new Set(names[draft.scope] ?? [])].filter((one): one is string => Boolean(one)).sort();
  }, [agents.data, draft.scope]);
  return (
    <div className={classes.pair}>
      <Select
        size="xs"
        label="Scope"
        data={scopes.map((one) => ({ value: one, label: SCOPES[one] ?? one }))}
        allowDeselect={false}
        value={draft.scope}
        onChange={(scope) => set({ scope: (scope ?? "tenant") as Draft["scope"] })}
      />
      {draft.scope !== "tenant" && (
        <Autocomplete
          size="xs"
          label="Target"
          placeholder={draft.compare === "below" ? "" : "each separately"}
          data={known}
          limit={30}
          value={draft.target}
          error={fault}
          onChange={(target) => set({ target })}
        />
      )}
    </div>
  );
}

function NotificationsField({ draft, set }: Part) {
  const hooks = useApi("/v1/webhooks/out", undefined, { keep: true });
  const items = hooks.data?.items ?? [];
  if (hooks.data && items.length === 0)
    return (
      <p className={classes.faint}>
        No webhook endpoint yet: <code className="mono">observatory webhooks add scaler https://…</code>
      </p>
    );
  return (
    <MultiSelect
      size="xs"
      label="Notifications"
      placeholder={draft.endpoint_ids.length === 0 ? "none" : ""}
      data={items.map((one) => ({ value: one.endpoint_id, label: one.name }))}
      value={draft.endpoint_ids}
      onChange={(endpoint_ids) => set({ endpoint_ids })}
    />
  );
}
