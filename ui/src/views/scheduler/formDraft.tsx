// Form drafts of the Scheduler: kept under a name until saved or discarded, started from the item as it was
// then; and the conflict dialog when someone else changed it.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { useNames } from "~/widgets/users";
import classes from "./Scheduler.module.css";

export interface FormDraft<D> {
  draft: D;
  /** The `updated_at` of the version it was started from; null for a new one. */
  was: string | null;
}

interface Changed {
  updated_at: string;
  updated_by: string;
}

export function useFormDraft<T extends Changed, D>(
  name: string,
  thing: T | null,
  draftOf: (thing: T) => D,
  fresh: () => D,
): [FormDraft<D>, (kept: FormDraft<D> | null) => void] {
  const [text, setText] = useDraft(name);
  const [first] = useState(() => thing);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the two functions are always the same
  const kept = useMemo((): FormDraft<D> => {
    if (text !== null) return JSON.parse(text) as FormDraft<D>;
    return first ? { draft: draftOf(first), was: first.updated_at } : { draft: fresh(), was: null };
  }, [text, first]);
  return [kept, (next) => setText(next === null ? null : JSON.stringify(next))];
}

interface Asked<D> {
  what: string;
  thing: Changed;
  mine: D;
  theirs: D;
  keep: (kept: FormDraft<D>) => void;
}

export function Theirs<D>({ what, thing, mine, theirs, keep }: Asked<D>) {
  const names = useNames();
  const was = thing.updated_at;
  return (
    <div className={classes.trouble} role="alert">
      <p>
        ! {names(thing.updated_by)} changed this {what} <Ago at={was} />, while you were editing. Your input
        is kept, not saved.
      </p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={() => keep({ draft: mine, was })}>
          Overwrite with mine
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => keep({ draft: theirs, was })}>
          Use theirs
        </Button>
      </div>
    </div>
  );
}

interface Ended {
  does: string;
  busy: boolean;
  denied: string | undefined;
  /** On a concurrent change: it is resolved first. */
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
        {" "}
        Discard{" "}
      </Button>
      {denied && <span className={classes.faint}>{denied}</span>}
    </div>
  );
}
