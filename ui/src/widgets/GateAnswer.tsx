// Approve, edit and reject, each with its consequence on the button. By key always in two presses, and reject
// always: these cannot be undone. A refused edit shows its faults at the text; the original stays held.
import { Button, Kbd, TextInput } from "@mantine/core";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { Problem } from "~/api/client";
import { approve, edit, reject } from "~/commands/session";
import { useKeys } from "~/shell/keys";
import { DiffEditor, readObject } from "./Diff";
import { useDraft } from "./drafts";
import { ExactBytes } from "./ExactBytes";
import { closed, opened } from "./embeddedJson";
import type { Exact } from "./exactBytes";
import { hasTwice } from "./formatJson";
import classes from "./GateCard.module.css";
import { escaped, warningsOf } from "./inert";
import { Json, pretty } from "./Json";
import type { AllowedAction, Gate } from "./pendingItems";
import { useWhyNot } from "./users";
import { useSettled } from "./useSettled";

type Message = Record<string, unknown> | null;
type Verb = "approve" | "edit" | "reject";
const KEYS: Record<Verb, string> = { approve: "A", edit: "E", reject: "R" };

/** Whether the user may, and if not why; from the item, else from the signed-in user. */
function useMay(can: AllowedAction[] | undefined): (verb: Verb) => { allowed: boolean; why: string | null } {
  const why = useWhyNot("approve") ?? null;
  return (verb) => can?.find((one) => one.verb === verb) ?? { allowed: why === null, why };
}

function labelsOf(gate: Gate): Record<Verb, string> {
  const left = gate.quorum - gate.approvals.length - 1;
  return {
    approve:
      left > 0
        ? `Approve, ${left} more required`
        : gate.recipient
          ? `Approve (send to ${gate.recipient})`
          : "Approve",
    edit: left > 0 ? "Save edit, more approvals required" : "Approve edited",
    reject: `Reject (notify ${gate.agent_id ?? "the agent"})`,
  };
}

interface Answering {
  gate: Gate;
  content: Exact;
  done?: () => void;
  keyed: boolean;
}

export function GateAnswer({ gate, content, done, keyed }: Answering) {
  const [armed, setArmed] = useState<Verb | null>(null);
  const [draft, setDraft] = useDraft(`gate ${gate.message_id}`);
  const [note, setNote] = useDraft(`note ${gate.message_id}`);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(null);
  const settled = useSettled();
  const began = useRef(false);
  const buttons = useRef<Partial<Record<Verb, HTMLButtonElement | null>>>({});
  const area = useRef<HTMLDivElement>(null);
  const may = useMay(gate.can);
  const message = useMemo(() => readObject(content.text), [content.text]);
  const original = "value" in message ? message.value : null;
  const shown = escaped(original ? JSON.stringify(opened(original), null, 2) : content.pretty);
  const editing = draft !== null;
  const read = editing ? readObject(draft) : null;
  const ready = editing && draft !== shown && read !== null && "value" in read;
  const labels = labelsOf(gate);

  useEffect(() => {
    if (armed && settled) buttons.current[armed]?.focus();
  }, [armed, settled]);
  useEffect(() => {
    // A restored draft is shown, but does not take focus.
    const field = editing && began.current ? area.current?.querySelector("textarea") : null;
    field?.focus();
    field?.setSelectionRange(0, 0);
    field?.scrollTo(0, 0);
  }, [editing]);

  const answer = async (verb: Verb) => {
    const { session_id, agent_id, message_id } = gate;
    if (busy || !agent_id || !message_id || (verb === "edit" && !ready)) return;
    setBusy(true);
    setArmed(null);
    setRefused(null);
    // Bound to the very bytes shown, not to the list's newer state.
    const held = { session_id, agent_id, message_id, digest: content.digest ?? gate.action_digest, note };
    const hear = (problem: Problem) => {
      setRefused(problem);
      return problem.code === 422;
    };
    let response: unknown = null;
    if (verb === "approve") response = await approve(held, hear);
    else if (verb === "reject") response = await reject(held, hear);
    else if (read && "value" in read) response = await edit(held, closed(read.value, original ?? {}), hear);
    setBusy(false);
    if (!response) return;
    setDraft(null);
    setNote(null);
    done?.();
  };
  // By key always twice; by mouse only for the action that discards work.
  const twice = (verb: Verb) => (armed === verb && settled ? void answer(verb) : setArmed(verb));
  const start = () => {
    setArmed(null);
    began.current = true;
    setDraft(shown);
  };
  const stop = () => {
    setDraft(null);
    setRefused(null);
  };
  useKeys(
    keyed && !editing
      ? {
          a: { says: "Approve (press twice)", run: () => may("approve").allowed && twice("approve") },
          e: { says: "Edit", run: () => may("edit").allowed && start() },
          r: { says: "Reject (press twice)", run: () => may("reject").allowed && twice("reject") },
        }
      : {},
    "Held message",
  );
  useKeys(
    editing
      ? {
          "mod+enter": { says: "Approve edited (press twice)", run: () => ready && twice("edit") },
          // A changed text is not discarded by a key that also means "back".
          Escape: { says: "Cancel editing", run: () => draft === shown && stop() },
        }
      : armed
        ? { Escape: { says: "Cancel", run: () => setArmed(null) } }
        : {},
    "Held message",
  );
  const button = (verb: Verb, off = false) => {
    const { allowed, why } = may(verb);
    return (
      <Button
        ref={(made) => {
          buttons.current[verb] = made;
        }}
        className={classes.button}
        variant={verb === "reject" ? "default" : "filled"}
        data-danger={verb === "reject" || undefined}
        data-armed={armed === verb || undefined}
        disabled={!allowed || off || busy || !settled}
        title={why ?? undefined}
        rightSection={keyed && verb !== "edit" ? <Hint>{KEYS[verb]}</Hint> : undefined}
        // A double click is one action, not an action and its confirmation.
        onClick={(event) => {
          if (event.detail > 1) return;
          if (verb === "reject") twice(verb);
          else void answer(verb);
        }}
        onBlur={() => setArmed((now) => (now === verb ? null : now))}
      >
        {armed === verb ? `Confirm: ${labels[verb]}` : labels[verb]}
      </Button>
    );
  };
  const denied = (["approve", "edit", "reject"] as const)
    .map((verb) => may(verb))
    .find((one) => !one.allowed);
  return (
    <>
      <div ref={area} className={classes.content}>
        {editing ? (
          <DiffEditor
            original={shown}
            text={draft}
            onText={(text) => {
              setDraft(text);
              setRefused(null);
            }}
            faults={refused?.faults ?? []}
          />
        ) : (
          <>
            <Warnings gate={gate} content={content} message={original} />
            <ActionPreview message={original} />
            <ExactBytes content={content} digest={gate.action_digest} />
          </>
        )}
      </div>
      {refused && refused.code === 422 && (
        <p className={classes.refused} role="alert">
          Not sent: {refused.faults.length > 0 ? "the marked members break the schema." : refused.message} The
          original stays held, unchanged.
        </p>
      )}
      <TextInput
        label="Note, recorded and sent to the agent (optional)"
        value={note ?? ""}
        onChange={(event) => setNote(event.currentTarget.value || null)}
        maxLength={1000}
      />
      <div className={classes.foot}>
        <div className={classes.answers}>
          {editing ? button("edit", !ready) : button("approve")}
          {editing ? (
            <Button className={classes.button} variant="default" onClick={stop}>
              Cancel
            </Button>
          ) : (
            <Button
              className={classes.button}
              variant="default"
              disabled={!may("edit").allowed || busy}
              rightSection={keyed ? <Hint>E</Hint> : undefined}
              onClick={start}
            >
              Edit…
            </Button>
          )}
          {!editing && button("reject")}
        </div>
      </div>
      <p className="unseen" role="status">
        {armed ? `Press again to confirm: ${labels[armed]}` : ""}
      </p>
      {denied?.why && <p className={classes.faint}>{denied.why}</p>}
    </>
  );
}

function Hint({ children }: { children: ReactNode }) {
  return (
    <Kbd size="xs" aria-hidden className={classes.hint}>
      {children}
    </Kbd>
  );
}

/** Warnings shown before the message is read: content that could make it appear as something else. */
function Warnings({ gate, content, message }: { gate: Gate; content: Exact; message: Message }) {
  const said = useMemo(() => {
    const { title, agent_id, recipient, tool } = gate;
    const inside = message?.action as { tool_input?: unknown } | null | undefined;
    const input = typeof inside?.tool_input === "string" ? inside.tool_input : "";
    const texts = [title, agent_id, recipient, tool, content.text, content.pretty, pretty(input)];
    const found = warningsOf(...texts.map((text) => text ?? ""));
    if (hasTwice(content.text) || hasTwice(input))
      found.push("has a duplicate name in one object: parsers differ in which value they use");
    return found;
  }, [gate, content, message]);
  if (said.length === 0) return null;
  return (
    <ul className={classes.warnings} aria-label="Warnings">
      {said.map((one) => (
        <li key={one}>! It {one}</li>
      ))}
    </ul>
  );
}

/** The action extracted from the message: the tool and its input. The bytes below are authoritative. */
function ActionPreview({ message }: { message: Message }) {
  const action = message?.action as { tool_call?: string; tool_input?: unknown } | null | undefined;
  if (!action?.tool_input) return null;
  return (
    <div>
      <p className={classes.doing}>
        It would call <code>{action.tool_call ?? "a tool"}</code> with
      </p>
      <Json value={action.tool_input} label="Tool input" />
    </div>
  );
}
