// One dead letter: why it died, what it carried, where it came from, and its two ways out.
import { Button, CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { settleLetter } from "~/acts/jobs";
import { useAnswer } from "~/api/questions";
import type { DeadLetterItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Id } from "~/widgets/Figures";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { Empty, Loading, Panel, Trouble } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import classes from "../Scheduler.module.css";
import { KINDS, STATES } from "./letters";

export function Letter({ letter_id }: { letter_id: string }) {
  const [, setUrl] = useUrl();
  const asked = useAnswer(
    "/v1/dead-letters/{letter_id}",
    {},
    { params: { letter_id }, every: 5_000, keep: true },
  );
  const close = () => setUrl({ letter: null });
  if (asked.error?.code === 404)
    return (
      <Empty>
        There is no such letter here.{" "}
        <button type="button" className={classes.link} onClick={close}>
          Show all letters
        </button>
      </Empty>
    );
  if (!asked.data)
    return asked.error ? (
      <Trouble problem={asked.error} again={() => asked.refetch()} />
    ) : (
      <Loading rows={5} />
    );
  const letter = asked.data;
  const sign = STATES[letter.state];
  return (
    <>
      <header className={classes.head}>
        <h2>{letter.source_name}</h2>
        <Tag tone={sign.tone}>
          {sign.mark} {sign.word}
        </Tag>
        <CloseButton size="sm" aria-label="Close the letter" onClick={close} />
      </header>
      {asked.error && <p className={classes.note}>Not up to date: {asked.error.message}</p>}
      {letter.state === "dead" && <Ways letter={letter} />}
      <About letter={letter} />
      <Panel title="How it began, as it was to be sent">
        {letter.preview ? (
          <Json value={letter.preview} label="What it carried" />
        ) : (
          <p className={classes.calm}>Nothing of it was kept.</p>
        )}
      </Panel>
    </>
  );
}

function Ways({ letter: { letter_id, source_name, kind } }: { letter: DeadLetterItem }) {
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
            await settleLetter(letter_id, source_name, "retry");
            setBusy(false);
          }}
        >
          Retry once
        </Button>
        <Button {...plain} aria-expanded={asking} onClick={() => setAsking(!asking)}>
          Discard…
        </Button>
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
      {asking && (
        <Sure
          does="Discard this letter"
          onNo={() => setAsking(false)}
          onYes={() => settleLetter(letter_id, source_name, "discard")}
        >
          <p>
            {kind === "job" ? "The run is not sent" : "The delivery is not made"}, by nobody. The record keeps
            it. This cannot be undone.
          </p>
        </Sure>
      )}
    </>
  );
}

function About({ letter }: { letter: DeadLetterItem }) {
  const names = useNames();
  return (
    <Panel title="Why">
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
          <dt>died</dt>
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
          <dt>letter</dt>
          <dd>
            <Id id={letter.letter_id} length={22} />
          </dd>
        </div>
      </dl>
    </Panel>
  );
}
