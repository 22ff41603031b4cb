// Two small forms at a fact. A quarantine is first planned (nothing happens), then confirmed by name. What was
// typed is kept until it was done: a sign-in that ended must not cost it.
import { Button, Textarea } from "@mantine/core";
import { useState } from "react";
import { markFalse, type Planned, plan, quarantine } from "~/acts/facts";
import { useDraft } from "./drafts";
import classes from "./FactForms.module.css";
import { Trouble } from "./Panel";

export function MarkFalse({ fact, done }: { fact: string; done: (marked: boolean) => void }) {
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
        label="Why is it false? (may stay empty)"
        value={note ?? ""}
        onChange={(event) => setNote(event.currentTarget.value)}
      />
      <div className={classes.tools}>
        <Button size="compact-xs" type="submit" loading={busy}>
          Mark false and show who took it over
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => done(false)}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

export function QuarantineFact({ fact, done }: { fact: string; done: () => void }) {
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
        label="What is true instead? Everybody who holds the fact is told this."
        value={correction}
        onChange={(event) => {
          setCorrection(event.currentTarget.value);
          setPlanned(null);
        }}
      />
      {problem && <Trouble problem={problem} />}
      {planned && (
        <div role="status">
          {planned.length === 0 ? (
            <p className={classes.none}>Nobody who is still to be told holds it.</p>
          ) : (
            <>
              <p className={classes.none}>
                {planned.length} would be paused and told (each can be undone); nothing has happened yet:
              </p>
              {partial && (
                <p className={classes.none}>
                  It spread further than can be looked at: whoever is beyond is not reached by this.
                </p>
              )}
              <ul className={classes.plain}>
                {planned.map((one) => (
                  <li key={`${one.agent_id} ${one.session_id}`}>
                    {one.agent_id} in {one.session_id.slice(0, 8)}…: pause
                    {one.inject ? ", tell the correction" : ""}
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
            Say what would happen
          </Button>
        ) : (
          <Button size="compact-xs" color="red" type="submit" loading={busy}>
            Pause {planned.length} and tell them
          </Button>
        )}
        <Button size="compact-xs" variant="default" onClick={done}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
