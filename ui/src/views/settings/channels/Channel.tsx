// One endpoint: a test with its real answer, its form, how it fares, its secret, and its end.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "~/acts/acts";
import { removeChannel, rotateChannel, switchChannel } from "~/acts/connections";
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { DeliveryWhole, WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { ms } from "~/widgets/words";
import { Danger, Doing } from "../parts/Danger";
import classes from "../parts/Parts.module.css";
import { ChannelForm } from "./ChannelForm";
import type { Fresh } from "./Channels";

interface Props {
  item: WebhookItem;
  events: readonly string[];
  denied: string | undefined;
  onSecret: (fresh: Fresh) => void;
}

const OVERLAP_S = 86_400;

export function Channel({ item, events, denied, onSecret }: Props) {
  const [, setUrl] = useUrl();
  const { endpoint_id, name } = item;
  return (
    <>
      <Test item={item} denied={denied} />
      <ChannelForm item={item} events={events} denied={denied} onSecret={onSecret} />
      <div className={classes.part}>
        <h3>How it fares</h3>
        <dl className={classes.facts}>
          <dt>last taken</dt>
          <dd>
            <Ago at={item.last_ok_at} />
          </dd>
          <dt>last failed</dt>
          <dd>
            <Ago at={item.last_failed_at} />
            {item.failures > 0 && `, ${item.failures} in a row`}
          </dd>
          <dt>waiting</dt>
          <dd>
            {item.waiting}
            {item.waiting_since && (
              <>
                , the oldest <Ago at={item.waiting_since} />
              </>
            )}
          </dd>
          {item.disabled_reason && (
            <>
              <dt>disabled</dt>
              <dd>{item.disabled_reason}</dd>
            </>
          )}
        </dl>
        <div className={classes.buttons}>
          <Link
            className={classes.link}
            to="/forensics/$board"
            params={{ board: "webhooks" }}
            search={{ endpoint: endpoint_id } as never}
          >
            Everything sent there, try by try
          </Link>
        </div>
      </div>
      {item.kind === "webhook" && (
        <div className={classes.part}>
          <h3>Secret</h3>
          <p>Rotating makes a new one; for a day both sign, so the receiver can change over.</p>
          <Danger
            word="Rotate the secret"
            does="Rotate: show a new secret"
            denied={denied}
            danger={false}
            onYes={async () => {
              const made = await rotateChannel(endpoint_id, OVERLAP_S);
              if (made) onSecret({ endpoint_id, secret: made.secret });
            }}
          >
            A new secret is shown here, once. The one in use signs beside it for 24 hours, then no more.
          </Danger>
        </div>
      )}
      <div className={classes.part}>
        <div className={classes.buttons}>
          <Doing
            word={item.state === "active" ? "Disable" : "Enable"}
            denied={denied}
            onClick={() => switchChannel(endpoint_id, name, item.state !== "active")}
          />
        </div>
        <Danger
          word="Remove the channel"
          does={`Remove “${name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeChannel(endpoint_id, name)) setUrl({ one: null });
          }}
        >
          Nothing is sent there any more, also not the {item.waiting} that wait. Rules that name it tell it
          nothing. Its secret is gone; its log stays.
        </Danger>
      </div>
    </>
  );
}

function Test({ item, denied }: { item: WebhookItem; denied: string | undefined }) {
  const [sent, setSent] = useState<DeliveryWhole | null>(null);
  const run = async () => {
    const told = await act(
      "The test",
      () => send("POST /v1/webhooks/out/{endpoint_id}/test", { params: { endpoint_id: item.endpoint_id } }),
      (answer) => ({
        text:
          answer.state === "delivered" ? `“${item.name}” took the test.` : `“${item.name}” was tried once.`,
      }),
    );
    setSent(told);
    askAgain("/v1/webhooks/out");
  };
  const last = sent?.tries.at(-1);
  return (
    <div className={classes.part}>
      <div className={classes.buttons}>
        <Doing word="Send a test" denied={denied} onClick={run} />
        <span className={classes.faint}>One marked message, now, and what comes of it.</span>
      </div>
      {last && (
        <div role="status" aria-label="What came of the test">
          <ul className={classes.outcomes}>
            <li>
              <Tag tone={last.ok ? "good" : "alert"}>{last.ok ? "✓ taken" : "× failed"}</Tag>
              <span>
                {last.detail}
                {last.code !== null && ` (${last.code})`}, {ms(last.took_ms)}
              </span>
            </li>
            {last.excerpt && (
              <li>
                <code className={classes.code}>{last.excerpt}</code>
              </li>
            )}
          </ul>
        </div>
      )}
    </div>
  );
}
