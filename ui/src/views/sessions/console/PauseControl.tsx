// Pause, resume, cancel; and the three states of a pause as they arrive: requested, acknowledged, confirmed.
import { Button } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { cancel, pause as hold, unpause } from "~/commands/session";
import type { InterventionItem } from "~/protocol/openapi";
import { exact } from "~/widgets/clock";
import { ago } from "~/widgets/format";
import { useNow } from "~/widgets/now";
import { useNames } from "~/widgets/users";
import { pauseWarning, stagesOf } from "./interventionState";
import classes from "./PauseControl.module.css";

interface PauseProps {
  sessionId: string;
  agent: string;
  paused: boolean;
  pause: InterventionItem | null;
  held: number;
  /** Why it is not permitted; undefined if the user may. */
  denied: string | undefined;
}

export function PauseControl({ sessionId, agent, paused, pause, held, denied }: PauseProps) {
  const [busy, setBusy] = useState(false);
  const [ending, setEnding] = useState(false);
  const [stop, resumeButton] = [useRef<HTMLButtonElement>(null), useRef<HTMLButtonElement>(null)];
  const acted = useRef(false);
  // The pressed button is disabled now: focus moves to its opposite, not to nowhere.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the state moves it
  useEffect(() => {
    if (acted.current && document.activeElement === document.body)
      (paused ? resumeButton : stop).current?.focus({ preventScroll: true });
    acted.current = false;
  }, [paused]);
  const run = async (command: () => Promise<unknown>) => {
    setBusy(true);
    acted.current = true;
    await command();
    setBusy(false);
  };
  const may = denied === undefined;
  const names = useNames();
  return (
    <div className={classes.hold}>
      <p className={classes.state} role="status">
        <span aria-hidden className={classes.mark} data-paused={paused || undefined}>
          {paused ? "‖" : "▸"}
        </span>
        {paused ? `${agent}: paused` : `${agent}: running`}
        {held > 0 && `, ${held} held`}
      </p>
      <div className={classes.acts}>
        <Button
          ref={stop}
          size="compact-sm"
          disabled={!may || paused}
          title={denied}
          loading={busy && !paused}
          onClick={() => void run(() => hold(sessionId, agent))}
        >
          Pause
        </Button>
        <Button
          ref={resumeButton}
          size="compact-sm"
          variant="default"
          disabled={!may || !paused}
          title={denied}
          loading={busy && paused}
          onClick={() => void run(() => unpause(sessionId, agent))}
        >
          Resume
        </Button>
        {!ending && (
          <Button
            size="compact-sm"
            variant="subtle"
            color="red"
            disabled={!may}
            title={denied}
            onClick={() => setEnding(true)}
          >
            Cancel…
          </Button>
        )}
      </div>
      {ending && (
        // biome-ignore lint/a11y/useSemanticElements: a question with two answers, not a set of fields
        <div className={classes.ending} role="group" aria-label="Confirm cancel">
          <p>Cancel {agent}'s work in this session? This cannot be undone; held messages stay held.</p>
          <Button
            size="compact-sm"
            color="red"
            autoFocus
            onClick={() => {
              setEnding(false);
              void run(() => cancel(sessionId, agent));
            }}
          >
            Cancel its work
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => setEnding(false)}>
            Keep running
          </Button>
        </div>
      )}
      {denied && <p className={classes.late}>{denied}</p>}
      {paused && pause && (
        <p className={classes.why}>
          by {names(pause.operator_id)}
          {pause.note ? `: ${pause.note}` : ", no reason given"}
        </p>
      )}
      {pause && <Stages pause={pause} />}
    </div>
  );
}

export function Stages({ pause }: { pause: InterventionItem }) {
  const now = useNow();
  const late = pauseWarning(pause, now);
  return (
    <>
      <ol className={classes.stages} aria-label="State of the pause">
        {stagesOf(pause).map(({ word, at, means }) => (
          <li key={word} data-done={at !== null || undefined} title={at ? exact(at) : means}>
            <span aria-hidden>{at ? "●" : "○"}</span> {word}
            <span className={classes.when}>{at ? ago(at, now) : "not yet"}</span>
          </li>
        ))}
      </ol>
      {late && <p className={classes.late}>{late}</p>}
    </>
  );
}
