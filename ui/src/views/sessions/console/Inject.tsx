// A prompt for an agent's next context. Warns beforehand if it may not be read, and then asks for
// confirmation.
import { Button, Checkbox, Textarea } from "@mantine/core";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { inject } from "~/commands/session";
import type { InterventionItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { useNow } from "~/widgets/now";
import { Empty } from "~/widgets/Panel";
import classes from "./Inject.module.css";
import { injectWarnings } from "./interventionState";

interface InjectProps {
  sessionId: string;
  agent: string | null;
  isMember: boolean;
  items: readonly InterventionItem[];
  /** Why it is not permitted; undefined if the user may. */
  denied: string | undefined;
  /** Once typing has started the field stays: updates must not remove it. */
  onBegin: () => void;
}

export function Inject(shown: InjectProps) {
  if (shown.agent === null) return <Empty>No agents in this session yet; nothing to prompt.</Empty>;
  // A draft belongs to its agent: a change of selection must not send it to another.
  return <Prompt key={shown.agent} {...shown} agent={shown.agent} />;
}

function Prompt({ sessionId, agent, isMember, items, denied, onBegin }: InjectProps & { agent: string }) {
  const known = useApi("/v1/agents/{agent_id}", undefined, { params: { agent_id: agent }, every: 10_000 });
  const now = useNow();
  const [draft, setText] = useDraft(`prompt ${sessionId} ${agent}`);
  const text = draft ?? "";
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const warnings = injectWarnings(known.data, items, agent, now);
  if (!isMember) warnings.unshift("It has not sent anything in this session.");
  // Until the gateway has reported its liveness, there is no reason to warn.
  const asked = !known.isPending;
  const ready = denied === undefined && asked && text.trim() !== "" && (warnings.length === 0 || sure);
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
      {warnings.length > 0 && (
        <div className={classes.doubts} role="note">
          {warnings.map((one) => (
            <p key={one}>{one}</p>
          ))}
          <Checkbox
            size="xs"
            label="Send anyway"
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
        <span>Added to its next context. You can undo it until it is delivered.</span>
      </div>
    </form>
  );
}
