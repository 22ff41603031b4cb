// One rule: its form, a test to its channels with each response, mute, and removal.
import { Button } from "@mantine/core";
import { useState } from "react";
import { send } from "~/api/client";
import { runCommand } from "~/commands/session";
import { muteRule, removeRule } from "~/commands/settings";
import { plural } from "~/plural";
import type { ConditionItem, RuleItem, TestAnswer, WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Left } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNames } from "~/widgets/users";
import { BusyButton, DangerButton } from "../parts/DangerButton";
import classes from "../parts/Parts.module.css";
import { RuleForm } from "./RuleForm";

interface Props {
  rule: RuleItem;
  conditions: readonly ConditionItem[];
  channels: readonly WebhookItem[];
  denied: string | undefined;
}

const MUTES: [string, number][] = [
  ["15 min", 15],
  ["1 h", 60],
  ["8 h", 480],
  ["1 d", 1_440],
];

export function Rule(props: Props) {
  const { rule, denied } = props;
  const [, setUrl] = useUrl();
  const names = useNames();
  return (
    <>
      <RuleForm {...props} />
      <RuleTest rule={rule} denied={denied} />
      <div className={classes.part}>
        <h3>Mute</h3>
        {rule.muted_until ? (
          <p>
            Muted, <Left until={rule.muted_until} />: evaluated and shown, but no notifications are sent.
          </p>
        ) : (
          <p>Send no notifications for a while. Alerts still firing when the mute ends are sent then.</p>
        )}
        <div className={classes.buttons}>
          {MUTES.map(([word, minutes]) => (
            <Button
              key={word}
              size="compact-sm"
              variant="default"
              disabled={denied !== undefined}
              title={denied}
              onClick={() => void muteRule(rule, minutes)}
            >
              {word}
              <span className="unseen"> mute</span>
            </Button>
          ))}
          {rule.muted_until && <BusyButton word="Unmute" denied={denied} onClick={() => muteRule(rule, 0)} />}
        </div>
      </div>
      <div className={classes.part}>
        <p className={classes.faint}>
          Changed <Ago at={rule.updated_at} /> by {names(rule.updated_by)}.
        </p>
        <DangerButton
          word="Remove rule"
          does={`Remove “${rule.name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeRule(rule)) setUrl({ one: null });
          }}
        >
          The rule is deleted and its firing alerts ({rule.open}) are resolved. Past alerts stay in the audit
          trail.
        </DangerButton>
      </div>
    </>
  );
}

function RuleTest({ rule, denied }: { rule: RuleItem; denied: string | undefined }) {
  const [answer, setAnswer] = useState<TestAnswer | null>(null);
  const run = async () => {
    const result = await runCommand(
      "Test",
      () => send("POST /v1/alert-rules/{rule_id}/test", { params: { rule_id: rule.rule_id } }),
      ({ outcomes }) => ({
        text: `Test sent to ${plural(outcomes.length, "channel")}.`,
      }),
    );
    setAnswer(result);
  };
  return (
    <div className={classes.part}>
      <h3>Send a test notification</h3>
      <p>Sends one alert marked as a test to each saved channel.</p>
      <div className={classes.buttons}>
        <BusyButton word="Send a test notification" denied={denied} onClick={run} />
      </div>
      {answer &&
        (answer.outcomes.length === 0 ? (
          <p role="status">No channels: nothing was sent.</p>
        ) : (
          <div role="status" aria-label="Test results by channel">
            <ul className={classes.outcomes}>
              {answer.outcomes.map((one) => (
                <li key={one.endpoint_id}>
                  <Tag tone={one.ok ? "good" : "alert"}>{one.ok ? "✓ delivered" : "× failed"}</Tag>
                  <b>{one.name ?? one.endpoint_id}</b>
                  <span>
                    {one.detail}
                    {one.code !== null && ` (${one.code})`}
                  </span>
                </li>
              ))}
            </ul>
          </div>
        ))}
    </div>
  );
}
