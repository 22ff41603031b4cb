// One exporter: a test record and its answer, how far it is, its form; pause, move, remove.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { act } from "~/acts/acts";
import { haltExporter, removeExporter, rewindExporter } from "~/acts/connections";
import { send } from "~/api/client";
import type { ExporterItem, ExporterTested } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Danger, Doing } from "../parts/Danger";
import classes from "../parts/Parts.module.css";
import { ExporterForm } from "./ExporterForm";

export function Exporter({ item, denied }: { item: ExporterItem; denied: string | undefined }) {
  const [, setUrl] = useUrl();
  const { exporter_id, name } = item;
  const isPaused = item.status === "paused";
  return (
    <>
      <Test item={item} denied={denied} />
      <div className={classes.part}>
        <dl className={classes.facts}>
          <dt>settled up to</dt>
          <dd>
            event {item.cursor}, {item.lag_events} behind
            {item.lag_s !== null && `, the oldest ${Math.round(item.lag_s)} s old`}
          </dd>
          <dt>sent</dt>
          <dd>
            {item.sent}, last <Ago at={item.last_sent_at} />; left out by filters {item.filtered}, refused{" "}
            {item.refused}
          </dd>
          {item.problem && (
            <>
              <dt>problem</dt>
              <dd>
                {item.problem} (<Ago at={item.problem_at} />, {item.failures} times)
              </dd>
            </>
          )}
        </dl>
        <div className={classes.buttons}>
          <Doing
            word={isPaused ? "Resume" : "Pause"}
            denied={denied}
            onClick={() => haltExporter(exporter_id, name, !isPaused)}
          />
          {item.status === "failing" && (
            <Doing
              word="Try again now"
              denied={denied}
              onClick={() => haltExporter(exporter_id, name, false)}
            />
          )}
        </div>
      </div>
      <ExporterForm item={item} denied={denied} />
      <Rewind item={item} denied={denied} />
      <div className={classes.part}>
        <Danger
          word="Remove the exporter"
          does={`Remove “${name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeExporter(exporter_id, name)) setUrl({ one: null });
          }}
        >
          Nothing more is sent there. Its place and its headers are forgotten; what was sent stays sent.
        </Danger>
      </div>
    </>
  );
}

function Rewind({ item, denied }: { item: ExporterItem; denied: string | undefined }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const to = Number(text);
  const isNumber = /^\d+$/.test(text.trim()) && to >= 1;
  return (
    <div className={classes.part}>
      <h3>Move it</h3>
      <TextInput
        size="xs"
        label="The next event it sends"
        description={`1 sends everything again; now it is ${item.cursor + 1}.`}
        inputMode="numeric"
        disabled={denied !== undefined}
        value={text}
        error={fault ?? (text !== "" && !isNumber ? "A number from 1 on." : null)}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setFault(null);
        }}
      />
      <Danger
        word="Move"
        does={`Go on with event ${to}`}
        denied={denied ?? (isNumber ? undefined : "Give a number first")}
        onYes={async () => {
          const done = await rewindExporter(item.exporter_id, to, (problem) => {
            setFault(problem.message);
            return true;
          });
          if (done) setText("");
        }}
      >
        {to <= item.cursor
          ? `The ${item.cursor - to + 1} events from ${to} on are sent again: the backend may show them twice.`
          : `What lies before event ${to} is not sent there.`}
      </Danger>
    </div>
  );
}

const OUTCOMES = {
  taken: { tone: "good", word: "✓ taken" },
  later: { tone: "blocked", word: "‖ later" },
  refused: { tone: "alert", word: "× refused" },
} as const;

function Test({ item, denied }: { item: ExporterItem; denied: string | undefined }) {
  const [answer, setAnswer] = useState<ExporterTested | null>(null);
  const run = async () =>
    setAnswer(
      await act(
        "The test",
        () => send("POST /v1/exporters/{exporter_id}/test", { params: { exporter_id: item.exporter_id } }),
        ({ outcome }) => ({ text: `One test record went to “${item.name}”: ${outcome}.` }),
      ),
    );
  return (
    <div className={classes.part}>
      <div className={classes.buttons}>
        <Doing word="Send a test" denied={denied} onClick={run} />
        <span className={classes.faint}>One marked record that is no event and moves nothing.</span>
      </div>
      {answer && (
        <div role="status" aria-label="What came of the test">
          <ul className={classes.outcomes}>
            <li>
              <Tag tone={OUTCOMES[answer.outcome].tone}>{OUTCOMES[answer.outcome].word}</Tag>
              <span>{answer.detail}</span>
            </li>
          </ul>
        </div>
      )}
    </div>
  );
}
