// The gateway's own verifier as a second check: it also compares archived payloads, columns and key records,
// which a browser cannot see.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Problem, send } from "~/api/client";
import type { VerifyAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { ErrorNotice, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "./Log.module.css";

export function ServerVerification() {
  const [answer, setAnswer] = useState<VerifyAnswer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("verify");
  const ask = async () => {
    setBusy(true);
    setProblem(null);
    try {
      setAnswer(await send("POST /v1/audit/verify", { body: {} }));
    } catch (error) {
      setProblem(error as Problem);
    }
    setBusy(false);
  };
  return (
    <Panel title="Server-side verification" aside="the gateway's own verifier">
      <div className={classes.known}>
        <p>It also reads the stored rows, payloads and columns, which a browser cannot see.</p>
        <Button
          size="compact-xs"
          variant="default"
          loading={busy}
          disabled={denied !== undefined}
          title={denied}
          onClick={() => void ask()}
        >
          Verify on the gateway
        </Button>
        {denied && <p className={classes.faint}>{denied}</p>}
        {problem && <ErrorNotice problem={problem} again={() => void ask()} />}
        {answer && <Opinion answer={answer} />}
      </div>
    </Panel>
  );
}

function Opinion({ answer }: { answer: VerifyAnswer }) {
  const { first_break } = answer;
  return (
    <div role="status">
      <p>
        <Tag tone={answer.valid ? "good" : "alert"}>
          <span aria-hidden>{answer.valid ? "✓" : "×"}</span> {answer.valid ? "valid" : "BROKEN"}
        </Tag>{" "}
        {answer.events_verified.toLocaleString("en")} events, <Ago at={answer.verified_at} />.{" "}
        {first_break && (
          <>
            {first_break.sentence}{" "}
            <Link
              to="/forensics/$board"
              params={{ board: "audit" }}
              search={{ seq: String(first_break.sequence_number) } as never}
            >
              event {first_break.sequence_number.toLocaleString("en")}
            </Link>
          </>
        )}
      </p>
      <ul className={classes.checks} aria-label="Checks">
        {Object.entries(answer.checks).map(([name, held]) => (
          <li key={name} data-held={held ?? undefined}>
            <span aria-hidden>{held === null ? "–" : held ? "✓" : "×"}</span> {name.replaceAll("_", " ")}
            <span className="unseen">{held === null ? " not checked" : held ? " held" : " broken"}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
