// Notification channels: Slack and similar, e-mail, signed webhooks. Alert rules name them; channels with
// events receive each of those events as well.
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import type { WebhookItem, WebhookList } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { MakeNew, MasterDetail } from "../parts/MasterDetail";
import { Secret } from "../parts/Secret";
import { Section } from "../parts/Section";
import { Channel } from "./Channel";
import { ChannelForm } from "./ChannelForm";
import { standingOf } from "./endpoints";

export interface Fresh {
  endpoint_id: string;
  secret: string;
}

export function Channels() {
  const query = useApi("/v1/webhooks/out", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Channels and webhooks"
      lead="Notifications to a chat, e-mail, or a signed webhook. Alert rules name channels; a channel with events also receives each of those events."
      fills
      acts={<MakeNew word="New channel" denied={denied} />}
    >
      <Loaded query={query} rows={8}>
        {(list) => <List list={list} denied={denied} />}
      </Loaded>
    </Section>
  );
}

function List({ list, denied }: { list: WebhookList; denied: string | undefined }) {
  const [fresh, setFresh] = useState<Fresh | null>(null);
  const columns = useMemo(
    () => [
      { id: "name", title: "Channel", cell: (one: WebhookItem) => one.name },
      { id: "kind", title: "Kind", cell: (one: WebhookItem) => one.kind, width: 76 },
      {
        id: "state",
        title: "Status",
        width: 118,
        cell: (one: WebhookItem) => {
          const { tone, word } = standingOf(one);
          return <Tag tone={tone}>{word}</Tag>;
        },
      },
      {
        id: "url",
        title: "Address",
        from: 620,
        cell: (one: WebhookItem) => <span title={one.url}>{one.url}</span>,
      },
      {
        id: "events",
        title: "Events",
        from: 760,
        width: "20%",
        cell: (one: WebhookItem) => (
          <span title={one.events.join(", ")}>
            {one.events.length === 0 ? "alerts that name it" : one.events.join(", ")}
          </span>
        ),
      },
      {
        id: "ok",
        title: "Last delivered",
        from: 880,
        width: 92,
        cell: (one: WebhookItem) => <Ago at={one.last_ok_at} />,
      },
    ],
    [],
  );
  return (
    <MasterDetail
      label="Channels"
      rows={list.items}
      keyOf={(one) => one.endpoint_id}
      nameOf={(one) => one.name}
      columns={columns}
      empty={
        <Empty command="observatory webhooks add ops-chat https://hooks.slack.com/services/… --kind slack">
          No channels. Create one here, send a test notification, then select it in an alert rule; or on the
          command line:
        </Empty>
      }
      makes="New channel"
      making={<ChannelForm item={null} events={list.event_types} denied={denied} onSecret={setFresh} />}
      one={(one) => (
        <>
          {fresh?.endpoint_id === one.endpoint_id && (
            <Secret secret={fresh.secret} onSeen={() => setFresh(null)}>
              Configure it at the receiver: every call is signed with it.
            </Secret>
          )}
          <Channel item={one} events={list.event_types} denied={denied} onSecret={setFresh} />
        </>
      )}
    />
  );
}
