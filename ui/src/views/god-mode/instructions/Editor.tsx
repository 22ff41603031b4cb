// Editor for a new version of a system prompt: a draft kept until it is issued or discarded, the difference
// to the current version, and conflict resolution.
import { Button, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { refetch } from "~/api/queries";
import { issue } from "~/commands/instructions";
import { plural } from "~/plural";
import type { InstructionsAnswer } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Diff } from "~/widgets/Diff";
import { useWhyNot } from "~/widgets/users";
import classes from "../God.module.css";
import { type Draft, faultOf } from "./agentTypes";

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
      // After a refetch the current version is theirs: the notice below says so.
      refetch("/v1/instructions");
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
            ! Version {version} was issued by someone else. Yours is kept and not issued; the difference below
            is to theirs.
          </p>
          <Button size="compact-sm" variant="default" onClick={() => set({ ...draft, was: version })}>
            Overwrite with mine
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
        <ConfirmInline does={`Push to ${kind}`} typed={kind} onYes={push} onNo={() => setAsking(false)}>
          {known ? `${plural(agents, "agent")} of type ${kind}` : `Every agent of type ${kind}`} in every
          cluster will use this system prompt as version {version + 1} from the next step on. You can roll
          back.
        </ConfirmInline>
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
            Discard draft
          </Button>
          <span className={classes.faint}>{denied ?? fault}</span>
        </div>
      )}
    </form>
  );
}
