// A prompt for an agent's next context. Says beforehand when it may not be read, and asks for a yes then.
import { Button, Checkbox, Textarea } from "@mantine/core";
import { useState } from "react";
import { inject } from "~/acts/acts";
import { useAnswer } from "~/api/questions";
import type { InterventionItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { useNow } from "~/widgets/now";
import { Empty } from "~/widgets/Panel";
import classes from "./Inject.module.css";
import { doubts } from "./standing";

interface Shown {
  sessionId: string;
  agent: string | null;
  isMember: boolean;
  items: readonly InterventionItem[];
  /** Why not; undefined where the one signed in may. */
  denied: string | undefined;
  /** Whoever begins to write stays at this: what comes in meanwhile must not take the field away. */
  onBegin: () => void;
}

export function Inject(shown: Shown) {
  if (shown.agent === null)
    return <Empty>No agent has spoken in this session; there is nobody to prompt.</Empty>;
  // A draft belongs to its agent: it must not go to another by a change of selection.
  return <Prompt key={shown.agent} {...shown} agent={shown.agent} />;
}

function Prompt({ sessionId, agent, isMember, items, denied, onBegin }: Shown & { agent: string }) {
  const known = useAnswer("/v1/agents/{agent_id}", undefined, { params: { agent_id: agent }, every: 10_000 });
  const now = useNow();
  const [draft, setText] = useDraft(`prompt ${sessionId} ${agent}`);
  const text = draft ?? "";
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const told = doubts(known.data, items, agent, now);
  if (!isMember) told.unshift("It has said nothing in this session.");
  // Before the gateway has said whether it listens, nothing is known to speak against it, nor for it.
  const asked = !known.isPending;
  const ready = denied === undefined && asked && text.trim() !== "" && (told.length === 0 || sure);
  const send = async () => {
    if (!ready || busy) return;
    setBusy(true);
    const answer = await inject(sessionId, agent, text, !isMember);
    setBusy(false);
    if (answer) setText(null);
  };
  return (
    <form
      className={classes.prompt}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Textarea
        label={`Prompt for ${agent}`}
        value={text}
        autosize
        minRows={2}
        maxRows={10}
        placeholder="Stop searching; use the 10-K you already have."
        onFocus={onBegin}
        onChange={(event) => setText(event.currentTarget.value || null)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void send();
          }
        }}
      />
      {told.length > 0 && (
        <div className={classes.doubts} role="note">
          {told.map((one) => (
            <p key={one}>{one}</p>
          ))}
          <Checkbox
            size="xs"
            label="Send it all the same"
            checked={sure}
            onChange={(event) => setSure(event.currentTarget.checked)}
          />
        </div>
      )}
      <div className={classes.acts}>
        <Button
          type="submit"
          size="compact-sm"
          disabled={!ready}
          loading={busy}
          title={denied ?? "Ctrl Enter"}
        >
          Inject prompt
        </Button>
        <span>Goes into its next context. You can take it back until it is delivered.</span>
      </div>
    </form>
  );
}
