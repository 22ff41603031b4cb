// Engaging a kill switch, from choosing to the second confirmation. Everything typed and the token of the
// next step survive a sign-in in between; the state always comes from the gateway, never guessed.
import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { Problem } from "~/api/client";
import { arm, confirm } from "~/commands/kill";
import { plural } from "~/plural";
import type { KillSwitchItem } from "~/protocol/openapi";
import { setUnfinished } from "~/shell/unfinished";
import { useUrl } from "~/useUrl";
import { useDraft } from "~/widgets/drafts";
import { Left } from "~/widgets/Figures";
import { useNow } from "~/widgets/now";
import { useMe } from "~/widgets/users";
import classes from "../God.module.css";
import { ChooseTarget } from "./ChooseTarget";
import {
  type Armed,
  armedOf,
  confirmationText,
  EMPTY_DRAFT,
  type EngageDraft,
  type KillTarget,
  parseDraft,
  stepOf,
  targetText,
  unfinishedSentence,
  warningOf,
} from "./engageSteps";

const DRAFT = "god:kill";
const STEPS = ["Target and reason", "First confirmation", "Second confirmation"];

export function EngageKillSwitch({ items, isOn }: { items: readonly KillSwitchItem[]; isOn: boolean }) {
  const [url, setUrl] = useUrl();
  const [text, setText] = useDraft(DRAFT);
  const [busy, setBusy] = useState(false);
  const now = useNow();
  const draft = parseDraft(text);
  const { armed } = draft;
  const step = busy && armed ? (armed.confirmed ? "second" : "first") : stepOf(armed, items, now);
  // Expired by this page's clock, and the gateway has not reported the outcome of the last confirmation.
  const isUnknown =
    step === "lapsed" &&
    draft.unsure &&
    armed?.confirmed &&
    items.find(({ kill_id }) => kill_id === armed.kill_id)?.state !== "lapsed";
  const keep = (changes: Partial<EngageDraft>) => setText(JSON.stringify({ ...draft, ...changes }));
  const drop = () => setText(draft.reason ? JSON.stringify({ ...EMPTY_DRAFT, reason: draft.reason }) : null);
  const unfinishedText = armed ? unfinishedSentence(armed, step, busy || draft.unsure) : null;
  useEffect(() => setUnfinished(unfinishedText), [unfinishedText]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the gateway reports it engaged
  useEffect(() => {
    if (step !== "engaged" || !armed) return;
    setText(null);
    setUnfinished(null);
    setUrl({ kill: armed.kill_id, scope: null, target: null }, true);
  }, [step]);

  const run = async (does: () => Promise<Partial<EngageDraft>>) => {
    setBusy(true);
    try {
      keep({ problem: null, typed: "", unsure: false, ...(await does()) });
    } catch (error) {
      keep({ problem: errorSentence(error as Error), unsure: error instanceof Problem && error.code === 0 });
    }
    setBusy(false);
  };
  const armTarget = ({ scope, target }: KillTarget, reason: string) =>
    run(async () => ({
      reason,
      armed: armedOf(await arm({ scope, target: scope === "global" ? null : target, reason: reason.trim() })),
    }));
  const confirmArmed = (mine: Armed) =>
    run(async () => {
      const { token, expires_at, state } = await confirm(mine.kill_id, mine.token);
      // The second response has no token: engaged, and the list shows it next.
      if (state === "engaged") {
        // Also for a user who has left the page by now: it must not be shown there as not engaged.
        setUnfinished(unfinishedSentence(mine, "engaged"));
        return { armed: mine };
      }
      return { armed: { ...mine, token: token ?? "", confirmed: true, expires_at: expires_at ?? "" } };
    });
  const at = step === "choose" ? 0 : step === "first" ? 1 : step === "second" ? 2 : 0;

  return (
    <details
      className={classes.throw}
      open={!isOn || armed !== null || draft.reason !== "" || url.scope !== undefined}
    >
      <summary>{isOn ? "Stop something else" : "Stop"}</summary>
      <ol className={classes.steps} aria-label="Kill switch steps">
        {STEPS.map((name, n) => (
          <li key={name} aria-current={n === at ? "step" : undefined} data-done={n < at || undefined}>
            <span aria-hidden>{n < at ? "✓" : n + 1}</span> {name}
          </li>
        ))}
      </ol>
      {draft.problem && (
        <p className={classes.trouble} role="alert">
          ! {draft.problem}
        </p>
      )}
      {isUnknown && (
        <p className={classes.trouble} role="alert">
          ! Unknown whether this was engaged: the second confirmation had no response. Checking with the
          gateway.
        </p>
      )}
      {(step === "lapsed" || step === "lost") && armed && !isUnknown && (
        <div className={classes.sure} role="alert">
          <p>
            <b>Not engaged; nothing is stopped.</b>{" "}
            {step === "lapsed"
              ? `The kill switch for ${targetText(armed)} was not confirmed within two minutes and lapsed.`
              : `The first confirmation for ${targetText(armed)} was recorded, but its response with the token for the second was lost.`}{" "}
            Your input is kept.
          </p>
          <div className={classes.buttons}>
            <Button
              size="compact-sm"
              color="red"
              loading={busy}
              onClick={() => void armTarget(armed, draft.reason)}
            >
              Arm again
            </Button>
            <Button size="compact-sm" variant="default" onClick={drop}>
              {" "}
              Cancel{" "}
            </Button>
          </div>
        </div>
      )}
      {(step === "first" || step === "second") && armed && (
        <Confirm
          key={step}
          armed={armed}
          step={step}
          typed={draft.typed}
          busy={busy}
          onType={(typed) => keep({ typed })}
          onYes={() => void confirmArmed(armed)}
          onNo={drop}
        />
      )}
      {step === "choose" && (
        <ChooseTarget
          reason={draft.reason}
          busy={busy}
          onReason={(reason) => keep({ reason, problem: null })}
          onArm={(meant) => void armTarget(meant, draft.reason)}
        />
      )}
    </details>
  );
}

/** Never claims more than is known. */
function errorSentence(error: Error): string {
  if (!(error instanceof Problem)) return error.message;
  if (error.code === 0) return `Unknown whether this was recorded: ${error.message}`;
  if (error.code === 401)
    return "Not engaged: your sign-in had ended before this reached the gateway. Your input is kept.";
  return `Not done: ${error.message}.`;
}

interface ConfirmProps {
  armed: Armed;
  step: "first" | "second";
  typed: string;
  busy: boolean;
  onType: (typed: string) => void;
  onYes: () => void;
  onNo: () => void;
}

function Confirm({ armed, step, typed, busy, onType, onYes, onNo }: ConfirmProps) {
  const tenant = useMe().data?.tenant_name ?? "";
  const word = confirmationText(armed, tenant, step);
  const isRight = typed.trim() === word;
  const agents = plural(armed.agents, "agent");
  const warning = warningOf(armed);
  const sessions = plural(armed.sessions, "session");
  return (
    <form
      className={classes.confirm}
      aria-label={STEPS[step === "first" ? 1 : 2]}
      onSubmit={(event) => {
        event.preventDefault();
        if (isRight && !busy) onYes();
      }}
    >
      <p className={classes.grave}>
        {step === "first" ? (
          <>
            <b>Armed (nothing stopped yet).</b> It would hold {agents} in {sessions}: {targetText(armed)}.
          </>
        ) : (
          <>
            <b>Final confirmation.</b> {agents} of {targetText(armed)} stop with their next message.
          </>
        )}{" "}
        <Left until={armed.expires_at} />, then it lapses automatically.
      </p>
      {warning && (
        <p className={classes.trouble} role="alert">
          ! {warning}
        </p>
      )}
      <label className={classes.typed}>
        <span>
          Type <b>{word}</b> to confirm
        </span>
        <input
          // biome-ignore lint/a11y/noAutofocus: the one thing to do at this step
          autoFocus
          value={typed}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onType(event.currentTarget.value)}
        />
      </label>
      <div className={classes.buttons}>
        <Button type="submit" color="red" loading={busy} disabled={!isRight}>
          {step === "first" ? "Confirm, 1 of 2" : `Stop ${agents} now`}
        </Button>
        <Button variant="default" onClick={onNo}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
