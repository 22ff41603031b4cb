// Forms to mark a fact false and to quarantine it. A quarantine is previewed first (nothing happens), then
// confirmed by name. Input is kept until it was done, also across an expired sign-in.
import { Button, Textarea } from "@mantine/core";
import { useState } from "react";
import { markFalse, type Planned, plan, quarantine } from "~/commands/facts";
import { plural } from "~/plural";
import { useDraft } from "./drafts";
import classes from "./FactForms.module.css";
import { ErrorNotice } from "./Panel";

export function MarkFalseForm({ fact, done }: { fact: string; done: (marked: boolean) => void }) {
  const [note, setNote] = useDraft(`false ${fact}`);
  const [busy, setBusy] = useState(false);
  return (
    <form
      className={classes.form}
      onSubmit={async (event) => {
        event.preventDefault();
        setBusy(true);
        const answer = await markFalse(fact, note ?? "");
        setBusy(false);
        if (!answer) return;
        setNote(null);
        done(true);
      }}
    >
      <Textarea
        size="xs"
        autosize
        minRows={1}
        label="Why is it false? (optional)"
        value={note ?? ""}
        onChange={(event) => setNote(event.currentTarget.value)}
      />
      <div className={classes.tools}>
        <Button size="compact-xs" type="submit" loading={busy}>
          Mark false and show spread
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => done(false)}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

export function QuarantineForm({ fact, done }: { fact: string; done: () => void }) {
  const [draft, setCorrection] = useDraft(`correction ${fact}`);
  const correction = draft ?? "";
  const [planned, setPlanned] = useState<Planned[] | null>(null);
  const [partial, setPartial] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const answer = await plan(fact, correction);
      setPlanned(answer.agents as unknown as Planned[]);
      setPartial(answer.truncated ?? false);
    } catch (error) {
      setProblem(error as Error);
    }
    setBusy(false);
  };
  return (
    <form
      className={classes.form}
      aria-label="Quarantine this fact"
      onSubmit={async (event) => {
        event.preventDefault();
        if (planned === null) return ask();
        setBusy(true);
        const answer = await quarantine(fact, correction, partial);
        setBusy(false);
        if (!answer) return;
        setCorrection(null);
        done();
      }}
    >
      <Textarea
        size="xs"
        autosize
        minRows={2}
        required
        label="Correction (sent to all affected agents)"
        value={correction}
        onChange={(event) => {
          setCorrection(event.currentTarget.value);
          setPlanned(null);
        }}
      />
      {problem && <ErrorNotice problem={problem} />}
      {planned && (
        <div role="status">
          {planned.length === 0 ? (
            <p className={classes.none}>No affected agent is left to correct.</p>
          ) : (
            <>
              <p className={classes.none}>
                {plural(planned.length, "agent")} would be paused and corrected (each can be undone); nothing
                has happened yet:
              </p>
              {partial && (
                <p className={classes.none}>
                  It spread beyond the search limit: agents beyond it are not included.
                </p>
              )}
              <ul className={classes.plain}>
                {planned.map((one) => (
                  <li key={`${one.agent_id} ${one.session_id}`}>
                    {one.agent_id} in {one.session_id.slice(0, 8)}…: pause
                    {one.inject ? ", send the correction" : ""}
                  </li>
                ))}
              </ul>
            </>
          )}
        </div>
      )}
      <div className={classes.tools}>
        {planned === null || planned.length === 0 ? (
          <Button size="compact-xs" type="submit" loading={busy} disabled={!correction.trim()}>
            Preview
          </Button>
        ) : (
          <Button size="compact-xs" color="red" type="submit" loading={busy}>
            Pause and correct {plural(planned.length, "agent")}
          </Button>
        )}
        <Button size="compact-xs" variant="default" onClick={done}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
