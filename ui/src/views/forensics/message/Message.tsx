// One message's page: what it says as a story, its exact bytes with their digest computed here, what became of
// it, its place in the chain and its proof, and what else concerns it.
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import type { MessageItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { Json } from "~/widgets/Json";
import { Empty, Loading, Panel, Trouble } from "~/widgets/Panel";
import { Bytes } from "./Bytes";
import { Chain } from "./Chain";
import { Header } from "./Header";
import classes from "./Message.module.css";
import { placeOf } from "./place";
import { Related } from "./Related";
import { Standing } from "./Standing";
import { Blocks } from "./Story";
import { storyOf } from "./story";

export function Message() {
  const { messageId } = useParams({ strict: false }) as { messageId: string };
  const asked = useAnswer("/v1/messages/{message_id}", undefined, {
    params: { message_id: messageId },
    every: 5_000,
  });
  if (asked.error?.code === 404)
    return (
      <div className={classes.page}>
        <Empty command="observatory search ''">
          No message or step of this tenant is called {messageId}. It may belong to another tenant, or
          retention removed it. <Link to="/forensics">To the archive</Link>
        </Empty>
      </div>
    );
  if (!asked.data)
    return (
      <div className={classes.page}>
        {asked.error ? <Trouble problem={asked.error} again={() => asked.refetch()} /> : <Loading rows={8} />}
      </div>
    );
  return <Opened key={asked.data.message_id} message={asked.data} stale={asked.error} />;
}

function Opened({ message, stale }: { message: MessageItem; stale: Error | null }) {
  const number = message.sequence_number;
  const navigate = useNavigate();
  // The chain grows: the one after may come while one looks.
  const events = useAnswer(
    "/v1/audit/tenant",
    { after: Math.max(0, number - 2), limit: 3 },
    { every: 10_000, keep: true },
  );
  const next = useAnswer("/v1/messages", { after: number, limit: 1 }, { every: 10_000 });
  const previous = useAnswer("/v1/audit/tenant", { after: Math.max(0, number - 12), limit: 11 });
  const place = placeOf(events.data?.items ?? [], number);
  const before = previous.data?.items
    .map((event) => placeOf([event], event.hash_chain.sequence_number).here)
    .findLast((one) => one?.message_id && one.number < number)?.message_id;
  const go = (messageId: string | null | undefined) => {
    if (messageId) void navigate({ to: "/forensics/message/$messageId", params: { messageId } });
  };
  useKeys(
    {
      j: { says: "Next message of the record", run: () => go(next.data?.items[0]?.message_id) },
      k: { says: "Message before it", run: () => go(before) },
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
          <Standing message={message} event={place.here?.event} />
          {message.message !== null && (
            <Panel title={story ? "What it says" : `A ${message.message_type}, as it is`}>
              {story ? (
                <Blocks blocks={story.blocks} />
              ) : (
                <div className={classes.part}>
                  <p className={classes.faint}>
                    This page does not know this type yet; here is what was recorded.
                  </p>
                  <Json value={message.message} label="The message" />
                </div>
              )}
            </Panel>
          )}
          <Bytes message={message} event={place.here?.event} />
        </div>
        <div className={classes.column}>
          <Chain asked={events} place={place} message_id={message.message_id} />
          <Related message={message} />
        </div>
      </div>
    </section>
  );
}
