// What is typed into a form of the Scheduler: kept under a name until it is saved or thrown away, begun from the
// thing as it was then; and what is asked when somebody else was faster.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { useNames } from "~/widgets/people";
import classes from "./Scheduler.module.css";

export interface Kept<D> {
  draft: D;
  /** The `updated_at` of what was begun from; null for a new one. */
  was: string | null;
}

interface Changed {
  updated_at: string;
  updated_by: string;
}

export function useKept<T extends Changed, D>(
  name: string,
  thing: T | null,
  draftOf: (thing: T) => D,
  fresh: () => D,
): [Kept<D>, (kept: Kept<D> | null) => void] {
  const [text, setText] = useDraft(name);
  const [first] = useState(() => thing);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the two functions are always the same
  const kept = useMemo((): Kept<D> => {
    if (text !== null) return JSON.parse(text) as Kept<D>;
    return first ? { draft: draftOf(first), was: first.updated_at } : { draft: fresh(), was: null };
  }, [text, first]);
  return [kept, (next) => setText(next === null ? null : JSON.stringify(next))];
}

interface Asked<D> {
  what: string;
  thing: Changed;
  mine: D;
  theirs: D;
  keep: (kept: Kept<D>) => void;
}

export function Theirs<D>({ what, thing, mine, theirs, keep }: Asked<D>) {
  const names = useNames();
  const was = thing.updated_at;
  return (
    <div className={classes.trouble} role="alert">
      <p>
        ! {names(thing.updated_by)} changed this {what} <Ago at={was} />, while you did. Yours is kept and not
        saved.
      </p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={() => keep({ draft: mine, was })}>
          Go on with mine, over theirs
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => keep({ draft: theirs, was })}>
          Take theirs
        </Button>
      </div>
    </div>
  );
}

interface Ended {
  does: string;
  busy: boolean;
  denied: string | undefined;
  /** Somebody was faster: first that is answered. */
  waits: boolean;
  throwAway: () => void;
}

export function SaveButtons({ does, busy, denied, waits, throwAway }: Ended) {
  return (
    <div className={classes.buttons}>
      <Button
        type="submit"
        size="compact-sm"
        loading={busy}
        disabled={denied !== undefined || waits}
        title={denied}
      >
        {does}
      </Button>
      <Button size="compact-sm" variant="default" onClick={throwAway}>
        Throw away
      </Button>
      {denied && <span className={classes.faint}>{denied}</span>}
    </div>
  );
}
