// One message's page: its content as a story, its exact bytes with their digest computed here, its delivery
// state, its position in the chain and its proof, and related items.
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { MessageItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { Json } from "~/widgets/Json";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { Bytes } from "./Bytes";
import { Chain } from "./Chain";
import { placeOf } from "./chainPosition";
import { DeliveryNotes } from "./DeliveryNotes";
import { Header } from "./Header";
import classes from "./Message.module.css";
import { Related } from "./Related";
import { Blocks } from "./Story";
import { storyOf } from "./story";

export function Message() {
  const { messageId } = useParams({ strict: false }) as { messageId: string };
  const query = useApi("/v1/messages/{message_id}", undefined, {
    params: { message_id: messageId },
    every: 5_000,
  });
  if (query.error?.code === 404)
    return (
      <div className={classes.page}>
        <Empty command="observatory search ''">
          There is no message or step {messageId} in this tenant. It may belong to another tenant, or
          retention removed it. <Link to="/forensics">Open the archive</Link>
        </Empty>
      </div>
    );
  if (!query.data)
    return (
      <div className={classes.page}>
        {query.error ? (
          <ErrorNotice problem={query.error} again={() => query.refetch()} />
        ) : (
          <Loading rows={8} />
        )}
      </div>
    );
  return <Opened key={query.data.message_id} message={query.data} stale={query.error} />;
}

function Opened({ message, stale }: { message: MessageItem; stale: Error | null }) {
  const number = message.sequence_number;
  const navigate = useNavigate();
  // The chain grows: the next event may arrive while the page is open.
  const events = useApi(
    "/v1/audit/tenant",
    { after: Math.max(0, number - 2), limit: 3 },
    { every: 10_000, keep: true },
  );
  const next = useApi("/v1/messages", { after: number, limit: 1 }, { every: 10_000 });
  const previous = useApi("/v1/audit/tenant", { after: Math.max(0, number - 12), limit: 11 });
  const place = placeOf(events.data?.items ?? [], number);
  const before = previous.data?.items
    .map((event) => placeOf([event], event.hash_chain.sequence_number).here)
    .findLast((one) => one?.message_id && one.number < number)?.message_id;
  const go = (messageId: string | null | undefined) => {
    if (messageId) void navigate({ to: "/forensics/message/$messageId", params: { messageId } });
  };
  useKeys(
    {
      j: { says: "Next message", run: () => go(next.data?.items[0]?.message_id) },
      k: { says: "Previous message", run: () => go(before) },
    },
    "Message",
  );
  const story = storyOf(message.message_type, message.message);
  return (
    <section className={classes.page} aria-label={`Message ${number}`}>
      <Header
        message={message}
        event={place.here?.event}
        does={story?.does}
        before={before ?? null}
        after={next.data?.items[0]?.message_id ?? null}
      />
      {stale && <p className={classes.stale}>Not up to date: {stale.message}</p>}
      <div className={classes.columns}>
        <div className={classes.column}>
          <DeliveryNotes message={message} event={place.here?.event} />
          {message.message !== null && (
            <Panel title={story ? "Content" : `${message.message_type} (raw)`}>
              {story ? (
                <Blocks blocks={story.blocks} />
              ) : (
                <div className={classes.part}>
                  <p className={classes.faint}>Unknown message type; here is the recorded JSON.</p>
                  <Json value={message.message} label="The message" />
                </div>
              )}
            </Panel>
          )}
          <Bytes message={message} event={place.here?.event} />
        </div>
        <div className={classes.column}>
          <Chain query={events} place={place} message_id={message.message_id} />
          <Related message={message} />
        </div>
      </div>
    </section>
  );
}
