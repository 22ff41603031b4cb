// One trigger: its level by subject, its suggestion and channels, and its actions.
import { Button, CloseButton } from "@mantine/core";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { muteTrigger, removeTrigger, testTrigger } from "~/commands/scaling";
import type { RuleItem, TestAnswer, TriggerLevel } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Ago, Id, Left } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import classes from "../Scheduler.module.css";
import { conditionText, figure, levelsOf, standingOf, suggestionText } from "./triggers";

interface Props {
  rule: RuleItem;
  level: TriggerLevel | undefined;
  close: () => void;
}

export function Trigger({ rule, level, close }: Props) {
  const now = useNow();
  const sign = standingOf(rule, now);
  return (
    <>
      <header className={classes.head}>
        <h2>{rule.name}</h2>
        <Tag tone={sign.tone}>
          {sign.mark} {sign.word}
        </Tag>
        <CloseButton size="sm" aria-label="Close the trigger" onClick={close} />
      </header>
      <Acts rule={rule} isMuted={sign.word === "muted"} close={close} />
      <CurrentLevel rule={rule} level={level} />
      <About rule={rule} />
    </>
  );
}

function Acts({ rule, isMuted, close }: { rule: RuleItem; isMuted: boolean; close: () => void }) {
  const [, setUrl] = useUrl();
  const denied = useWhyNot("admin");
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [tested, setTested] = useState<TestAnswer | null>(null);
  const plain = {
    size: "compact-sm",
    variant: "default",
    disabled: denied !== undefined || busy,
    title: denied,
  } as const;
  const doing = async <T,>(run: () => Promise<T>): Promise<T> => {
    setBusy(true);
    try {
      return await run();
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div className={classes.buttons}>
        <Button {...plain} onClick={() => setUrl({ edit: "1" })}>
          Edit…
        </Button>
        {isMuted ? (
          <Button {...plain} onClick={() => void doing(() => muteTrigger(rule.rule_id, rule.name, 0))}>
            Unmute
          </Button>
        ) : (
          [30, 480].map((minutes) => (
            <Button
              key={minutes}
              {...plain}
              onClick={() => void doing(() => muteTrigger(rule.rule_id, rule.name, minutes))}
            >
              Mute {minutes < 60 ? `${minutes} min` : `${minutes / 60} h`}
            </Button>
          ))
        )}
        <Button
          {...plain}
          onClick={async () => setTested(await doing(() => testTrigger(rule.rule_id, rule.name)))}
        >
          Test
        </Button>
        <Button {...plain} aria-expanded={asking} onClick={() => setAsking(!asking)}>
          Delete…
        </Button>
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
      {asking && (
        <ConfirmInline
          does={`Delete ${rule.name}`}
          onNo={() => setAsking(false)}
          onYes={async () => {
            if (await removeTrigger(rule.rule_id, rule.name)) close();
          }}
        >
          <p>It stops watching. Its past suggestions are kept. This cannot be undone; Mute can.</p>
        </ConfirmInline>
      )}
      {tested && tested.outcomes.length > 0 && (
        <Panel title="Test result">
          <ul className={classes.list} aria-label="Test result">
            {tested.outcomes.map((one) => (
              <li key={one.endpoint_id}>
                <Tag tone={one.ok ? "good" : "alert"}>{one.ok ? "✓ accepted" : "× failed"}</Tag>
                {one.name ?? one.endpoint_id}
                <span className={classes.why}>
                  {one.code ? `${one.code}: ` : ""}
                  {one.detail}
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

function CurrentLevel({ rule, level }: { rule: RuleItem; level: TriggerLevel | undefined }) {
  const levels = levelsOf(rule, level);
  return (
    <Panel
      title="Current level"
      aside={level && level.of > levels.length ? `the closest of ${level.of}` : undefined}
    >
      {levels.length === 0 ? (
        <p className={classes.calm}>{level ? "No data." : "Not evaluated yet."}</p>
      ) : (
        <ul className={classes.list} aria-label="Levels">
          {levels.map((one) => (
            <li key={one.subject}>
              {one.subject}
              <span className={classes.end}>
                {one.breaches ? <Tag tone="alert">! breached</Tag> : null}{" "}
                <b>{figure(rule.condition, one.value)}</b>
                {rule.condition !== "breaker" && (
                  <span className={classes.faint}> of {figure(rule.condition, rule.threshold)}</span>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function About({ rule }: { rule: RuleItem }) {
  const names = useNames();
  const hooks = useApi("/v1/webhooks/out", undefined, { keep: true });
  const channels = rule.endpoint_ids.map(
    (id) => hooks.data?.items.find((one) => one.endpoint_id === id)?.name ?? id,
  );
  const facts: [string, React.ReactNode][] = [
    ["watches", conditionText(rule)],
    ["suggests", suggestionText(rule)],
    ["cooldown", `${rule.cooldown_s} s`],
    [
      "notifies",
      channels.length > 0 ? channels.join(", ") : "no channel: shown here and in the audit trail only",
    ],
    ["firing", rule.open === 0 ? "no" : `${rule.open} now`],
    ...(rule.muted_until
      ? ([["muted", <Left key="muted" until={rule.muted_until} />]] as [string, React.ReactNode][])
      : []),
    [
      "changed",
      <span key="changed">
        <Ago at={rule.updated_at} /> by {names(rule.updated_by)}
      </span>,
    ],
    ["id", <Id key="id" id={rule.rule_id} length={20} />],
  ];
  return (
    <Panel title="Definition">
      <dl className={classes.facts}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
