// Held messages of the session: select one, read its exact bytes, rewrite it. A gated message is decided; one
// held by a pause is rewritten and stays held until released.
import { Button, Modal } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import { rewrite } from "~/commands/session";
import type { HoldItem, MessageItem } from "~/protocol/openapi";
import { DiffEditor, readObject } from "~/widgets/Diff";
import { useDraft } from "~/widgets/drafts";
import { closed, opened } from "~/widgets/embeddedJson";
import { type Exact, useExact } from "~/widgets/exactBytes";
import { Ago } from "~/widgets/Figures";
import { ExactBytes, GateCard } from "~/widgets/GateCard";
import { escaped } from "~/widgets/inert";
import { Empty, Loaded } from "~/widgets/Panel";
import { gateOfHold } from "~/widgets/pendingItems";
import { inLine, whyHeld } from "./interventionState";
import classes from "./Messages.module.css";

interface Listed {
  sessionId: string;
  asked: { data: HoldItem[] | undefined; error: Problem | null; isPending: boolean; refetch: () => unknown };
  agent: string | null;
  picked: string | undefined;
  onPick: (messageId: string | null) => void;
  denied: string | undefined;
}

export function Messages({ sessionId, asked, agent, picked, onPick, denied }: Listed) {
  // The open dialog stays open whatever happens to the list: it must not close while one types.
  const [open, setOpen] = useState<{ hold: HoldItem; to: "answer" | "edit" } | null>(null);
  const close = () => setOpen(null);
  const contents = useApi(
    "/v1/messages",
    { session_id: sessionId, state: "held", limit: 200 },
    { every: 4_000, keep: true, enabled: (asked.data?.length ?? 0) > 0 },
  );
  const titles = useMemo(
    () => new Map((contents.data?.items ?? []).map((item) => [item.message_id, titleOf(item)])),
    [contents.data],
  );
  const list = (
    <Loaded query={asked}>
      {(holds) => {
        if (holds.length === 0)
          return (
            <Empty>
              No held messages. Pause an agent: its messages are then held here and can be edited before
              delivery.
            </Empty>
          );
        const line = inLine(holds, agent);
        const hold = line.find((one) => one.message_id === picked) ?? line[0];
        return (
          <div className={classes.messages}>
            <ul className={classes.list} aria-label="Held messages">
              {line.map((one) => (
                <li key={one.message_id}>
                  <button
                    type="button"
                    className={classes.one}
                    aria-current={one === hold || undefined}
                    onClick={() => onPick(one.message_id)}
                  >
                    <span className={classes.title}>{titles.get(one.message_id) ?? one.message_type}</span>
                    <span className={classes.why}>
                      {one.agent_id}: {whyHeld(one)}, <Ago at={one.held_at} />
                      {one.rewritten && " · edited"}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
            {hold && (
              <SelectedMessage
                key={hold.message_id}
                hold={hold}
                denied={denied}
                open={(to) => setOpen({ hold, to })}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
  return (
    <>
      {list}
      <Modal
        opened={open !== null}
        onClose={close}
        size="80rem"
        title={open?.to === "answer" ? "Decide gate" : "Edit held message"}
      >
        {open?.to === "answer" && (
          <GateCard
            gate={gateOfHold(asked.data?.find((one) => one.message_id === open.hold.message_id) ?? open.hold)}
            done={() => {
              close();
              onPick(null);
            }}
          />
        )}
        {open?.to === "edit" && <Rewrite hold={open.hold} onClose={close} />}
      </Modal>
    </>
  );
}

/** Its exact bytes at once; editing or deciding opens a dialog with space for the difference. */
function SelectedMessage({
  hold,
  denied,
  open,
}: {
  hold: HoldItem;
  denied: string | undefined;
  open: (to: "answer" | "edit") => void;
}) {
  const exact = useExact(hold.message_id, hold.session_id, hold.action_digest);
  const isGate = hold.gate === "open";
  return (
    <div className={classes.picked}>
      <div className={classes.acts}>
        {isGate && (
          <Button size="compact-sm" onClick={() => open("answer")}>
            Decide…
          </Button>
        )}
        <Button
          size="compact-sm"
          variant={isGate ? "default" : "filled"}
          disabled={denied !== undefined || exact.data === undefined}
          title={denied}
          onClick={() => open("edit")}
        >
          Edit message…
        </Button>
        <span className={classes.why}>
          {isGate ? "Edited, it stays at its gate." : "Edited, it stays held."}
        </span>
      </div>
      <Loaded query={exact} rows={6}>
        {(content) => <ExactBytes content={content} digest={hold.action_digest} />}
      </Loaded>
    </div>
  );
}

/** New content for a held message; a refusal shows its faults at the text. */
function Rewrite({ hold, onClose }: { hold: HoldItem; onClose: () => void }) {
  const exact = useExact(hold.message_id, hold.session_id, hold.action_digest);
  return <Loaded query={exact}>{(content) => <Editor {...{ hold, content, onClose }} />}</Loaded>;
}

function Editor({ hold, content, onClose }: { hold: HoldItem; content: Exact; onClose: () => void }) {
  const message = useMemo(() => readObject(content.text), [content.text]);
  const original = "value" in message ? message.value : {};
  const shown = escaped("value" in message ? JSON.stringify(opened(original), null, 2) : content.pretty);
  const [kept, setKept] = useDraft(`rewrite ${hold.message_id}`);
  const draft = kept ?? shown;
  const [refused, setRefused] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const read = readObject(draft);
  const save = async () => {
    if (!("value" in read) || hold.agent_id === null) return;
    setBusy(true);
    setRefused(null);
    const changed = closed(read.value, original);
    const answer = await rewrite(hold.session_id, hold.agent_id, hold.message_id, changed, (problem) => {
      setRefused(problem);
      return problem.code === 422;
    });
    setBusy(false);
    if (!answer) return;
    setKept(null);
    onClose();
  };
  return (
    <div className={classes.rewrite}>
      <DiffEditor
        original={shown}
        text={draft}
        onText={(text) => {
          setKept(text);
          setRefused(null);
        }}
        faults={refused?.faults ?? []}
        label="New content (a complete message)"
      />
      {refused?.code === 422 && (
        <p className={classes.refused} role="alert">
          Not saved{refused.faults.length > 0 ? ": it breaks the schema" : `: ${refused.message}`}. The
          original stays held.
        </p>
      )}
      <div className={classes.acts}>
        <Button
          size="compact-sm"
          loading={busy}
          disabled={"problem" in read || draft === shown}
          onClick={() => void save()}
        >
          Save, keep held
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => {
            setKept(null);
            onClose();
          }}
        >
          Cancel
        </Button>
        <span className={classes.why}>The archive keeps both; only the new content is delivered.</span>
      </div>
    </div>
  );
}

/** Label of a held message: its intent and tool, or its type. */
export function titleOf(item: MessageItem): string {
  const payload = item.message as {
    cognition?: { intent?: string };
    action?: { tool_call?: string | null };
  } | null;
  const intent = payload?.cognition?.intent;
  const tool = payload?.action?.tool_call;
  if (intent) return tool ? `${intent} · ${tool}` : intent;
  return tool ?? item.message_type;
}
