// What is amiss now by the rules, and the rules: what is watched, from which figure on, and who is told.
import { useMemo } from "react";
import { makeDefaultRules } from "~/acts/settings";
import { useAnswer } from "~/api/questions";
import type { RuleItem, RuleList, WebhookItem } from "~/protocol/openapi";
import { Tag } from "~/widgets/Mark";
import { Empty, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Doing } from "../parts/Danger";
import { Desk, MakeNew } from "../parts/Desk";
import { Section } from "../parts/Section";
import { OpenNow } from "./OpenNow";
import { Rule } from "./Rule";
import { RuleForm } from "./RuleForm";
import { limitOf, MARKS, TONES } from "./rules";

export function Alerts() {
  const rules = useAnswer("/v1/alert-rules", undefined, { every: 5_000, keep: true });
  const channels = useAnswer("/v1/webhooks/out", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Alerts"
      lead="A rule watches a figure and tells its channels when it is amiss, once, and when it is over."
      fills
      acts={
        <>
          <Doing word="Add the default rules" denied={denied} onClick={() => makeDefaultRules([])} />
          <MakeNew word="New rule" denied={denied} />
        </>
      }
    >
      <Shown asked={rules} rows={8}>
        {(list) => <Rules list={list} channels={channels.data?.items ?? []} denied={denied} />}
      </Shown>
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
      { id: "state", title: "Now", cell: (rule: RuleItem) => <Standing rule={rule} />, width: 118 },
      {
        id: "limit",
        title: "Amiss from",
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
        id: "told",
        title: "Told to",
        from: 480,
        width: "22%",
        cell: (rule: RuleItem) =>
          rule.endpoint_ids.map((id) => named.get(id) ?? "a removed channel").join(", ") || "nobody outside",
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
    <Desk
      label="Alert rules"
      rows={list.items}
      keyOf={(rule) => rule.rule_id}
      nameOf={(rule) => rule.name}
      columns={columns}
      above={<OpenNow />}
      empty={
        <Empty command="observatory alerts defaults">
          Nothing is watched yet. “Add the default rules” makes the eight every house should have: loops,
          schema, caps, silence, dead letters, waiting people, proofs, signing. On the terminal:
        </Empty>
      }
      makes="New rule"
      making={<RuleForm conditions={conditions} channels={channels} rule={null} denied={denied} />}
      one={(rule) => <Rule rule={rule} conditions={conditions} channels={channels} denied={denied} />}
    />
  );
}

function Standing({ rule }: { rule: RuleItem }) {
  if (!rule.enabled) return <Tag tone="idle">○ off</Tag>;
  const muted = rule.muted_until !== null;
  if (rule.open > 0)
    return (
      <Tag tone={TONES[rule.severity]}>
        {MARKS[rule.severity]} {rule.open} amiss{muted ? ", muted" : ""}
      </Tag>
    );
  return muted ? <Tag tone="blocked">‖ muted</Tag> : <Tag tone="good">✓ quiet</Tag>;
}
