// Message panel: its exact bytes, its state, its place in the chain (the previous message and this one), and
// whether the chain holds here, checked by the gateway's verifier over this very range.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Problem, send } from "~/api/client";
import { useApi } from "~/api/queries";
import type { MessageItem, VerifyAnswer } from "~/protocol/openapi";
import { useExact } from "~/widgets/exactBytes";
import { Id } from "~/widgets/Figures";
import { ExactBytes } from "~/widgets/GateCard";
import { Tag } from "~/widgets/Mark";
import { ErrorNotice, Loaded } from "~/widgets/Panel";
import { useMay } from "~/widgets/users";
import classes from "./peeks.module.css";

const TONES = { forwarded: "good", held: "blocked", refused: "violation", rejected: "alert" } as const;

export function MessagePeek({ id }: { id: string }) {
  const query = useApi("/v1/messages/{message_id}", undefined, {
    params: { message_id: id },
    every: 5_000,
  });
  return (
    <div className={classes.peek}>
      <Loaded query={query} rows={8}>
        {(message) => <Seen message={message} />}
      </Loaded>
    </div>
  );
}

function Seen({ message }: { message: MessageItem }) {
  const raw = `/v1/messages/${encodeURIComponent(message.message_id)}?raw=true`;
  const exact = useExact(message.message_id, message.session_id, null);
  return (
    <>
      <div>
        <Tag tone={TONES[message.state]}>{message.state}</Tag> <Tag tone="idle">{message.message_type}</Tag>
        <h3 className={classes.title}>Message {message.sequence_number.toLocaleString("en")}</h3>
        <Id id={message.message_id} length={26} />
      </div>
      <Link
        to="/forensics/message/$messageId"
        params={{ messageId: message.message_id }}
        className={classes.link}
      >
        Open message page: timeline, chain and proof
      </Link>
      <dl className={classes.facts}>
        <dt>Session</dt>
        <dd>
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: message.session_id }}
            search={{ step: message.step_id } as never}
          >
            Open session
          </Link>
        </dd>
        <dt>Step</dt>
        <dd>
          <Id id={message.step_id} length={22} />
        </dd>
        {message.rewritten && (
          <>
            <dt>Changed</dt>
            <dd>Rewritten by a person; below are the agent's original bytes.</dd>
          </>
        )}
      </dl>
      <Chain number={message.sequence_number} />
      {exact.error?.code === 410 ? (
        <p className={classes.note}>Its content was shredded by retention; its position and hash remain.</p>
      ) : (
        <Loaded query={exact} rows={8}>
          {(content) => (
            <>
              <ExactBytes content={content} digest={content.digest} />
              <Button component="a" href={raw} download={`${message.message_id}.json`} variant="default">
                Download exact bytes
              </Button>
            </>
          )}
        </Loaded>
      )}
    </>
  );
}

/** Verified from the previous row on, so that both hashes are checked. */
function Chain({ number }: { number: number }) {
  const may = useMay("verify");
  const from = Math.max(1, number - 1);
  const query = useQuery<VerifyAnswer, Problem>({
    queryKey: ["chain", number],
    queryFn: () => send("POST /v1/audit/verify", { body: { from_sequence: from, to_sequence: number } }),
    enabled: may,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!may)
    return <p className={classes.note}>Number {number} of the chain. Your role may not run the verifier.</p>;
  if (query.error) return <ErrorNotice problem={query.error} again={() => void query.refetch()} />;
  const { data } = query;
  return (
    <section aria-label="Position in the chain">
      <h4 className={classes.sub}>Position in the chain</h4>
      <ol className={classes.chain}>
        {from < number && (
          <li>
            <span>{from.toLocaleString("en")}</span>
            {data?.first_hash ? <Id id={data.first_hash} length={20} /> : "…"}
          </li>
        )}
        <li aria-current="true">
          <span>{number.toLocaleString("en")}</span>
          {data?.last_hash ? <Id id={data.last_hash} length={20} /> : "…"}
        </li>
      </ol>
      {data && (
        <p className={data.valid ? classes.holds : classes.broken}>
          {data.valid
            ? "✓ Verified here: each hash follows from the previous one and the bytes match the record."
            : `! ${data.first_break?.sentence ?? "The chain does not hold here."}`}
        </p>
      )}
    </section>
  );
}
