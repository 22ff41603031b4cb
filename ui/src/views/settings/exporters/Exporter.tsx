// One exporter: test with its response, progress, form; pause, move, remove.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { send } from "~/api/client";
import { pauseExporter, removeExporter, rewindExporter } from "~/commands/connections";
import { runCommand } from "~/commands/session";
import { noun, plural } from "~/plural";
import type { ExporterItem, ExporterTested } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { BusyButton, DangerButton } from "../parts/DangerButton";
import classes from "../parts/Parts.module.css";
import { ExporterForm } from "./ExporterForm";

export function Exporter({ item, denied }: { item: ExporterItem; denied: string | undefined }) {
  const [, setUrl] = useUrl();
  const { exporter_id, name } = item;
  const isPaused = item.status === "paused";
  return (
    <>
      <ExporterTest item={item} denied={denied} />
      <div className={classes.part}>
        <dl className={classes.facts}>
          <dt>cursor</dt>
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
          <BusyButton
            word={isPaused ? "Resume" : "Pause"}
            denied={denied}
            onClick={() => pauseExporter(exporter_id, name, !isPaused)}
          />
          {item.status === "failing" && (
            <BusyButton
              word="Retry now"
              denied={denied}
              onClick={() => pauseExporter(exporter_id, name, false)}
            />
          )}
        </div>
      </div>
      <ExporterForm item={item} denied={denied} />
      <Rewind item={item} denied={denied} />
      <div className={classes.part}>
        <DangerButton
          word="Remove exporter"
          does={`Remove “${name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeExporter(exporter_id, name)) setUrl({ one: null });
          }}
        >
          Nothing more is sent there. Its cursor and headers are deleted; exported events are not recalled.
        </DangerButton>
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
      <h3>Move cursor</h3>
      <TextInput
        size="xs"
        label="Next event to export"
        description={`1 exports everything again; currently ${item.cursor + 1}.`}
        inputMode="numeric"
        disabled={denied !== undefined}
        value={text}
        error={fault ?? (text !== "" && !isNumber ? "Must be a number of at least 1." : null)}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setFault(null);
        }}
      />
      <DangerButton
        word="Move"
        does={`Continue with event ${to}`}
        denied={denied ?? (isNumber ? undefined : "Enter a number first")}
        onYes={async () => {
          const done = await rewindExporter(item.exporter_id, to, (problem) => {
            setFault(problem.message);
            return true;
          });
          if (done) setText("");
        }}
      >
        {to <= item.cursor
          ? `${plural(item.cursor - to + 1, "event")} from ${to} on ${noun(item.cursor - to + 1, "is", "are")} sent again: the backend may show duplicates.`
          : `Events before ${to} are not exported.`}
      </DangerButton>
    </div>
  );
}

const OUTCOMES = {
  taken: { tone: "good", word: "✓ accepted" },
  later: { tone: "blocked", word: "‖ retry later" },
  refused: { tone: "alert", word: "× refused" },
} as const;

function ExporterTest({ item, denied }: { item: ExporterItem; denied: string | undefined }) {
  const [answer, setAnswer] = useState<ExporterTested | null>(null);
  const run = async () =>
    setAnswer(
      await runCommand(
        "Test",
        () => send("POST /v1/exporters/{exporter_id}/test", { params: { exporter_id: item.exporter_id } }),
        ({ outcome }) => ({ text: `Test record sent to “${item.name}”: ${outcome}.` }),
      ),
    );
  return (
    <div className={classes.part}>
      <div className={classes.buttons}>
        <BusyButton word="Send a test notification" denied={denied} onClick={run} />
        <span className={classes.faint}>Sends one record marked as a test; the cursor does not move.</span>
      </div>
      {answer && (
        <div role="status" aria-label="Test result">
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
