// One dead letter: failure reason, payload, source, and retry or discard.
import { Button, CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { settleDeadLetter } from "~/commands/jobs";
import type { DeadLetterItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Ago, Id } from "~/widgets/Figures";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import classes from "../Scheduler.module.css";
import { KINDS, STATES } from "./deadLetterList";

export function DeadLetter({ letter_id }: { letter_id: string }) {
  const [, setUrl] = useUrl();
  const query = useApi(
    "/v1/dead-letters/{letter_id}",
    {},
    { params: { letter_id }, every: 5_000, keep: true },
  );
  const close = () => setUrl({ letter: null });
  if (query.error?.code === 404)
    return (
      <Empty>
        There is no such dead letter.{" "}
        <button type="button" className={classes.link} onClick={close}>
          Show all dead letters
        </button>
      </Empty>
    );
  if (!query.data)
    return query.error ? (
      <ErrorNotice problem={query.error} again={() => query.refetch()} />
    ) : (
      <Loading rows={5} />
    );
  const letter = query.data;
  const sign = STATES[letter.state];
  return (
    <>
      <header className={classes.head}>
        <h2>{letter.source_name}</h2>
        <Tag tone={sign.tone}>
          {sign.mark} {sign.word}
        </Tag>
        <CloseButton size="sm" aria-label="Close dead letter" onClick={close} />
      </header>
      {query.error && <p className={classes.note}>Not up to date: {query.error.message}</p>}
      {letter.state === "dead" && <RetryOrDiscard letter={letter} />}
      <About letter={letter} />
      <Panel title="Original message">
        {letter.preview ? (
          <Json value={letter.preview} label="Payload" />
        ) : (
          <p className={classes.calm}>The payload is no longer stored.</p>
        )}
      </Panel>
    </>
  );
}

function RetryOrDiscard({ letter: { letter_id, source_name, kind } }: { letter: DeadLetterItem }) {
  const denied = useWhyNot("operate");
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const plain = {
    size: "compact-sm",
    variant: "default",
    disabled: denied !== undefined,
    title: denied,
  } as const;
  return (
    <>
      <div className={classes.buttons}>
        <Button
          {...plain}
          loading={busy}
          onClick={async () => {
            setBusy(true);
            await settleDeadLetter(letter_id, source_name, "retry");
            setBusy(false);
          }}
        >
          Retry
        </Button>
        <Button {...plain} aria-expanded={asking} onClick={() => setAsking(!asking)}>
          Discard…
        </Button>
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
      {asking && (
        <ConfirmInline
          does="Discard dead letter"
          onNo={() => setAsking(false)}
          onYes={() => settleDeadLetter(letter_id, source_name, "discard")}
        >
          <p>
            {kind === "job" ? "The run" : "The delivery"} is never retried. The audit trail keeps it. This
            cannot be undone.
          </p>
        </ConfirmInline>
      )}
    </>
  );
}

function About({ letter }: { letter: DeadLetterItem }) {
  const names = useNames();
  return (
    <Panel title="Reason">
      <dl className={classes.facts}>
        <div>
          <dt>reason</dt>
          <dd>{letter.reason}</dd>
        </div>
        <div>
          <dt>{KINDS[letter.kind]}</dt>
          <dd>
            {letter.kind === "job" ? (
              <Link to="/scheduler" search={{ job: letter.source_id } as never}>
                {letter.source_name}
              </Link>
            ) : (
              <Link
                to="/forensics/$board"
                params={{ board: "webhooks" }}
                search={{ endpoint: letter.source_id, delivery: letter.subject_id } as never}
              >
                {letter.source_name}
              </Link>
            )}
          </dd>
        </div>
        <div>
          <dt>{letter.kind === "job" ? "run" : "delivery"}</dt>
          <dd>
            <Id id={letter.subject_id} length={22} />
          </dd>
        </div>
        <div>
          <dt>failed</dt>
          <dd>
            <Ago at={letter.created_at} />
          </dd>
        </div>
        {letter.ended_at && (
          <div>
            <dt>{STATES[letter.state].word}</dt>
            <dd>
              <Ago at={letter.ended_at} /> by {names(letter.ended_by)}
            </dd>
          </div>
        )}
        <div>
          <dt>id</dt>
          <dd>
            <Id id={letter.letter_id} length={22} />
          </dd>
        </div>
      </dl>
    </Panel>
  );
}
