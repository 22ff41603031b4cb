// Firing alerts and alert rules: condition, threshold, channels.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { makeDefaultRules } from "~/commands/settings";
import type { RuleItem, RuleList, WebhookItem } from "~/protocol/openapi";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { BusyButton } from "../parts/DangerButton";
import { MakeNew, MasterDetail } from "../parts/MasterDetail";
import { Section } from "../parts/Section";
import { FiringAlerts } from "./FiringAlerts";
import { Rule } from "./Rule";
import { RuleForm } from "./RuleForm";
import { limitOf, MARKS, TONES } from "./rules";

export function Alerts() {
  const rules = useApi("/v1/alert-rules", undefined, { every: 5_000, keep: true });
  const channels = useApi("/v1/webhooks/out", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Alerts"
      lead="A rule watches a metric and notifies its channels once when it fires and once when it resolves."
      fills
      acts={
        <>
          <BusyButton word="Add default rules" denied={denied} onClick={() => makeDefaultRules([])} />
          <MakeNew word="New rule" denied={denied} />
        </>
      }
    >
      <Loaded query={rules} rows={8}>
        {(list) => <Rules list={list} channels={channels.data?.items ?? []} denied={denied} />}
      </Loaded>
    </Section>
  );
}

function Rules({
  list,
  channels,
  denied,
}: {
  list: RuleList;
  channels: readonly WebhookItem[];
  denied: string | undefined;
}) {
  const { conditions } = list;
  const columns = useMemo(() => {
    const named = new Map(channels.map((one) => [one.endpoint_id, one.name]));
    return [
      { id: "name", title: "Rule", cell: (rule: RuleItem) => rule.name },
      { id: "state", title: "State", cell: (rule: RuleItem) => <RuleState rule={rule} />, width: 118 },
      {
        id: "limit",
        title: "Threshold",
        from: 620,
        cell: (rule: RuleItem) => {
          const limit = limitOf(
            rule,
            conditions.find((one) => one.condition === rule.condition),
          );
          return <span title={limit}>{limit}</span>;
        },
      },
      {
        id: "channels",
        title: "Channels",
        from: 480,
        width: "22%",
        cell: (rule: RuleItem) =>
          rule.endpoint_ids.map((id) => named.get(id) ?? "a removed channel").join(", ") || "none",
      },
      {
        id: "severity",
        title: "Severity",
        from: 820,
        width: 90,
        cell: (rule: RuleItem) => (
          <Tag tone={TONES[rule.severity]}>
            {MARKS[rule.severity]} {rule.severity}
          </Tag>
        ),
      },
    ];
  }, [conditions, channels]);
  return (
    <MasterDetail
      label="Alert rules"
      rows={list.items}
      keyOf={(rule) => rule.rule_id}
      nameOf={(rule) => rule.name}
      columns={columns}
      above={<FiringAlerts />}
      empty={
        <Empty command="observatory alerts defaults">
          No rules yet. “Add default rules” creates eight recommended ones: loops, schema, caps, silence, dead
          letters, pending approvals, proofs, signing. On the command line:
        </Empty>
      }
      makes="New rule"
      making={<RuleForm conditions={conditions} channels={channels} rule={null} denied={denied} />}
      one={(rule) => <Rule rule={rule} conditions={conditions} channels={channels} denied={denied} />}
    />
  );
}

function RuleState({ rule }: { rule: RuleItem }) {
  if (!rule.enabled) return <Tag tone="idle">○ disabled</Tag>;
  const muted = rule.muted_until !== null;
  if (rule.open > 0)
    return (
      <Tag tone={TONES[rule.severity]}>
        {MARKS[rule.severity]} {rule.open} firing{muted ? ", muted" : ""}
      </Tag>
    );
  return muted ? <Tag tone="blocked">‖ muted</Tag> : <Tag tone="good">✓ OK</Tag>;
}
