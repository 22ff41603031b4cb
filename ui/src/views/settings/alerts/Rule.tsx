// One rule: its form, a test to its channels with what each answered, a mute with its end, and its removal.
import { Button } from "@mantine/core";
import { useState } from "react";
import { act } from "~/acts/acts";
import { muteRule, removeRule } from "~/acts/settings";
import { send } from "~/api/client";
import type { ConditionItem, RuleItem, TestAnswer, WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Left } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNames } from "~/widgets/people";
import { Danger, Doing } from "../parts/Danger";
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
      <Test rule={rule} denied={denied} />
      <div className={classes.part}>
        <h3>Mute</h3>
        {rule.muted_until ? (
          <p>
            Muted, <Left until={rule.muted_until} />: it is judged and shown, and nobody outside is told.
          </p>
        ) : (
          <p>Tell nobody outside for a while. What still fires when the mute ends is told then.</p>
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
          {rule.muted_until && <Doing word="Unmute" denied={denied} onClick={() => muteRule(rule, 0)} />}
        </div>
      </div>
      <div className={classes.part}>
        <p className={classes.faint}>
          Changed <Ago at={rule.updated_at} /> by {names(rule.updated_by)}.
        </p>
        <Danger
          word="Remove the rule"
          does={`Remove “${rule.name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeRule(rule)) setUrl({ one: null });
          }}
        >
          It watches no more; what is open of it ({rule.open}) is resolved. What it told stays in the record.
        </Danger>
      </div>
    </>
  );
}

function Test({ rule, denied }: { rule: RuleItem; denied: string | undefined }) {
  const [answer, setAnswer] = useState<TestAnswer | null>(null);
  const run = async () => {
    const told = await act(
      "The test",
      () => send("POST /v1/alert-rules/{rule_id}/test", { params: { rule_id: rule.rule_id } }),
      ({ outcomes }) => ({
        text: `A marked test went to ${outcomes.length} ${outcomes.length === 1 ? "channel" : "channels"}.`,
      }),
    );
    setAnswer(told);
  };
  return (
    <div className={classes.part}>
      <h3>Send a test</h3>
      <p>One marked alert to each of its channels as saved, now.</p>
      <div className={classes.buttons}>
        <Doing word="Send a test" denied={denied} onClick={run} />
      </div>
      {answer &&
        (answer.outcomes.length === 0 ? (
          <p role="status">It has no channel: nobody was told.</p>
        ) : (
          <div role="status" aria-label="How each channel took it">
            <ul className={classes.outcomes}>
              {answer.outcomes.map((one) => (
                <li key={one.endpoint_id}>
                  <Tag tone={one.ok ? "good" : "alert"}>{one.ok ? "✓ taken" : "× failed"}</Tag>
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
