// New words for a class: a draft that stays until it is issued or thrown away, the difference to what is in force,
// and what to do when somebody else was first.
import { Button, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { issue } from "~/acts/instructions";
import type { Problem } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { InstructionsAnswer } from "~/protocol/openapi";
import { Diff } from "~/widgets/Diff";
import { useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import classes from "../God.module.css";
import { type Draft, faultOf } from "./classes";

interface Props {
  kind: string;
  known: InstructionsAnswer | null;
  draft: Draft;
  set: (draft: Draft | null) => void;
}

export function Editor({ kind, known, draft, set }: Props) {
  const [isAsking, setAsking] = useState(false);
  const denied = useWhyNot("admin");
  const version = known?.version ?? 0;
  const current = known?.text ?? "";
  const isOvertaken = draft.was !== version;
  const fault = faultOf(draft, current);
  const agents = known?.agents.filter((one) => !one.evicted).length ?? 0;
  const push = async () => {
    const refused = (problem: Problem) => {
      if (problem.reason !== "stale_instructions") return false;
      // Asked again, the version in force is theirs: the notice below tells it.
      askAgain("/v1/instructions");
      return true;
    };
    const done = await issue(kind, draft.text, draft.note.trim(), draft.was, refused);
    setAsking(false);
    if (done) set(null);
  };
  return (
    <form
      className={classes.editor}
      aria-label={`New instructions of ${kind}`}
      onSubmit={(e) => e.preventDefault()}
    >
      {isOvertaken && (
        <div className={classes.trouble} role="alert">
          <p>
            ! Somebody issued version {version} while you wrote. Yours is kept and not issued; the difference
            below is to theirs.
          </p>
          <Button size="compact-sm" variant="default" onClick={() => set({ ...draft, was: version })}>
            Go on with mine, over theirs
          </Button>
        </div>
      )}
      <Textarea
        label={`New instructions of ${kind}`}
        description="A draft, kept in this page; nothing is sent until you push it."
        value={draft.text}
        onChange={(event) => set({ ...draft, text: event.currentTarget.value })}
        autosize
        minRows={6}
        maxRows={16}
        spellCheck={false}
        classNames={{ input: classes.words }}
      />
      <TextInput
        size="xs"
        label="Note"
        placeholder="why this change"
        value={draft.note}
        onChange={(event) => set({ ...draft, note: event.currentTarget.value })}
      />
      <Diff
        before={current}
        after={draft.text}
        label={known ? `From version ${version} to yours` : "Yours"}
      />
      {isAsking ? (
        <Sure does={`Push to ${kind}`} typed={kind} onYes={push} onNo={() => setAsking(false)}>
          {known ? `${agents} ${agents === 1 ? "agent" : "agents"} of ${kind}` : `Every agent of ${kind}`} in
          every cluster get these words as version {version + 1} and work by them from their next step on. You
          can roll back.
        </Sure>
      ) : (
        <div className={classes.buttons}>
          <Button
            size="compact-sm"
            color="red"
            disabled={fault !== null || isOvertaken || denied !== undefined}
            title={denied ?? fault ?? undefined}
            onClick={() => setAsking(true)}
          >
            Push to every {kind}…
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => set(null)}>
            Throw the draft away
          </Button>
          <span className={classes.faint}>{denied ?? fault}</span>
        </div>
      )}
    </form>
  );
}
