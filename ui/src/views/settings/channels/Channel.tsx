// One channel: test with the receiver's response, form, delivery status, secret, and removal.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { removeChannel, rotateChannel, switchChannel } from "~/commands/connections";
import { runCommand } from "~/commands/session";
import { noun } from "~/plural";
import type { DeliveryDetail, WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { ms } from "~/widgets/format";
import { Tag } from "~/widgets/Mark";
import { BusyButton, DangerButton } from "../parts/DangerButton";
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
      <ChannelTest item={item} denied={denied} />
      <ChannelForm item={item} events={events} denied={denied} onSecret={onSecret} />
      <div className={classes.part}>
        <h3>Status</h3>
        <dl className={classes.facts}>
          <dt>last delivered</dt>
          <dd>
            <Ago at={item.last_ok_at} />
          </dd>
          <dt>last failed</dt>
          <dd>
            <Ago at={item.last_failed_at} />
            {item.failures > 0 && `, ${item.failures} in a row`}
          </dd>
          <dt>pending</dt>
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
            Delivery log
          </Link>
        </div>
      </div>
      {item.kind === "webhook" && (
        <div className={classes.part}>
          <h3>Secret</h3>
          <p>Rotating creates a new secret; for 24 hours both sign, so the receiver can switch over.</p>
          <DangerButton
            word="Rotate secret"
            does="Rotate and show new secret"
            denied={denied}
            danger={false}
            onYes={async () => {
              const made = await rotateChannel(endpoint_id, OVERLAP_S);
              if (made) onSecret({ endpoint_id, secret: made.secret });
            }}
          >
            A new secret is shown here once. The present one signs alongside it for 24 hours.
          </DangerButton>
        </div>
      )}
      <div className={classes.part}>
        <div className={classes.buttons}>
          <BusyButton
            word={item.state === "active" ? "Disable" : "Enable"}
            denied={denied}
            onClick={() => switchChannel(endpoint_id, name, item.state !== "active")}
          />
        </div>
        <DangerButton
          word="Remove channel"
          does={`Remove “${name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeChannel(endpoint_id, name)) setUrl({ one: null });
          }}
        >
          Nothing more is sent there; {item.waiting} pending{" "}
          {noun(item.waiting, "delivery is", "deliveries are")} dropped. Alert rules lose this channel. Its
          secret is deleted; its log is kept.
        </DangerButton>
      </div>
    </>
  );
}

function ChannelTest({ item, denied }: { item: WebhookItem; denied: string | undefined }) {
  const [sent, setSent] = useState<DeliveryDetail | null>(null);
  const run = async () => {
    const result = await runCommand(
      "Test",
      () => send("POST /v1/webhooks/out/{endpoint_id}/test", { params: { endpoint_id: item.endpoint_id } }),
      (answer) => ({
        text:
          answer.state === "delivered"
            ? `Test delivered to “${item.name}”.`
            : `Test to “${item.name}” was attempted once.`,
      }),
    );
    setSent(result);
    refetch("/v1/webhooks/out");
  };
  const last = sent?.tries.at(-1);
  return (
    <div className={classes.part}>
      <div className={classes.buttons}>
        <BusyButton word="Send a test notification" denied={denied} onClick={run} />
        <span className={classes.faint}>Sends one message marked as a test and shows the response.</span>
      </div>
      {last && (
        <div role="status" aria-label="Test result">
          <ul className={classes.outcomes}>
            <li>
              <Tag tone={last.ok ? "good" : "alert"}>{last.ok ? "✓ delivered" : "× failed"}</Tag>
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
