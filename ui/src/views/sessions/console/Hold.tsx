// Pause, unpause, cancel; and the three states of a pause as they come: requested, acknowledged, confirmed.
import { Button } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { cancel, pause as hold, unpause } from "~/acts/acts";
import type { InterventionItem } from "~/protocol/openapi";
import { exact } from "~/widgets/clock";
import { useNow } from "~/widgets/now";
import { useNames } from "~/widgets/people";
import { ago } from "~/widgets/words";
import classes from "./Hold.module.css";
import { slow, stagesOf } from "./standing";

interface Shown {
  sessionId: string;
  agent: string;
  paused: boolean;
  pause: InterventionItem | null;
  held: number;
  /** Why not; undefined where the one signed in may. */
  denied: string | undefined;
}

export function Hold({ sessionId, agent, paused, pause, held, denied }: Shown) {
  const [busy, setBusy] = useState(false);
  const [ending, setEnding] = useState(false);
  const [stop, goOn] = [useRef<HTMLButtonElement>(null), useRef<HTMLButtonElement>(null)];
  const acted = useRef(false);
  // The button that was pressed cannot be pressed again: the focus goes to the way back, not to nowhere.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the state moves it
  useEffect(() => {
    if (acted.current && document.activeElement === document.body)
      (paused ? goOn : stop).current?.focus({ preventScroll: true });
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
        {paused ? `${agent} is paused here` : `${agent} is free to go on`}
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
          ref={goOn}
          size="compact-sm"
          variant="default"
          disabled={!may || !paused}
          title={denied}
          loading={busy && paused}
          onClick={() => void run(() => unpause(sessionId, agent))}
        >
          Unpause
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
          <p>End {agent}'s work on this session? It cannot be taken back; what is held stays held.</p>
          <Button
            size="compact-sm"
            color="red"
            autoFocus
            onClick={() => {
              setEnding(false);
              void run(() => cancel(sessionId, agent));
            }}
          >
            End its work
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => setEnding(false)}>
            Keep it
          </Button>
        </div>
      )}
      {denied && <p className={classes.late}>{denied}</p>}
      {paused && pause && (
        <p className={classes.why}>
          by {names(pause.operator_id)}
          {pause.note ? `: ${pause.note}` : ", without a reason"}
        </p>
      )}
      {pause && <Stages pause={pause} />}
    </div>
  );
}

export function Stages({ pause }: { pause: InterventionItem }) {
  const now = useNow();
  const late = slow(pause, now);
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
