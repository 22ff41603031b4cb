// From a thought to the second confirmation. Everything typed and the token of the next step outlive a sign-in
// that ends in the middle; what is true is asked of the gateway, never guessed.
import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { arm, confirm } from "~/acts/kill";
import { Problem } from "~/api/client";
import type { KillSwitchItem } from "~/protocol/openapi";
import { setUnfinished } from "~/shell/unfinished";
import { useUrl } from "~/useUrl";
import { useDraft } from "~/widgets/drafts";
import { Left } from "~/widgets/Figures";
import { useNow } from "~/widgets/now";
import { useMe } from "~/widgets/people";
import classes from "../God.module.css";
import { Choose } from "./Choose";
import {
  type Armed,
  armedOf,
  type Meant,
  NOTHING,
  readThrow,
  stepOf,
  type Throw as Thrown,
  unfinished,
  warningOf,
  whatOf,
  wordOf,
} from "./throwing";

const DRAFT = "god:kill";
const STEPS = ["What and why", "First confirmation", "Second confirmation"];

export function Throw({ items, isOn }: { items: readonly KillSwitchItem[]; isOn: boolean }) {
  const [url, setUrl] = useUrl();
  const [text, setText] = useDraft(DRAFT);
  const [busy, setBusy] = useState(false);
  const now = useNow();
  const draft = readThrow(text);
  const { armed } = draft;
  const step = busy && armed ? (armed.confirmed ? "second" : "first") : stepOf(armed, items, now);
  // Its time is over by this page's clock, and the gateway has not said what came of the last confirmation.
  const isUnknown =
    step === "lapsed" &&
    draft.unsure &&
    armed?.confirmed &&
    items.find(({ kill_id }) => kill_id === armed.kill_id)?.state !== "lapsed";
  const keep = (changes: Partial<Thrown>) => setText(JSON.stringify({ ...draft, ...changes }));
  const drop = () => setText(draft.reason ? JSON.stringify({ ...NOTHING, reason: draft.reason }) : null);
  const said = armed ? unfinished(armed, step, busy || draft.unsure) : null;
  useEffect(() => setUnfinished(said), [said]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the gateway says that it is thrown
  useEffect(() => {
    if (step !== "thrown" || !armed) return;
    setText(null);
    setUnfinished(null);
    setUrl({ kill: armed.kill_id, scope: null, target: null }, true);
  }, [step]);

  const run = async (does: () => Promise<Partial<Thrown>>) => {
    setBusy(true);
    try {
      keep({ told: null, typed: "", unsure: false, ...(await does()) });
    } catch (error) {
      keep({ told: brokeOff(error as Error), unsure: error instanceof Problem && error.code === 0 });
    }
    setBusy(false);
  };
  const arms = ({ scope, target }: Meant, reason: string) =>
    run(async () => ({
      reason,
      armed: armedOf(await arm({ scope, target: scope === "global" ? null : target, reason: reason.trim() })),
    }));
  const confirms = (mine: Armed) =>
    run(async () => {
      const { token, expires_at, state } = await confirm(mine.kill_id, mine.token);
      // The second answer has no token: thrown, and the list says so next.
      if (state === "engaged") {
        // Also for whoever has left the page by now: nobody may read there that it was not.
        setUnfinished(unfinished(mine, "thrown"));
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
      <ol className={classes.steps} aria-label="Steps to a kill-switch">
        {STEPS.map((name, n) => (
          <li key={name} aria-current={n === at ? "step" : undefined} data-done={n < at || undefined}>
            <span aria-hidden>{n < at ? "✓" : n + 1}</span> {name}
          </li>
        ))}
      </ol>
      {draft.told && (
        <p className={classes.trouble} role="alert">
          ! {draft.told}
        </p>
      )}
      {isUnknown && (
        <p className={classes.trouble} role="alert">
          ! It is not known whether this was thrown: no answer came to the second confirmation. The gateway is
          asked until it tells.
        </p>
      )}
      {(step === "lapsed" || step === "lost") && armed && !isUnknown && (
        <div className={classes.sure} role="alert">
          <p>
            <b>Not thrown; nothing is stopped by it.</b>{" "}
            {step === "lapsed"
              ? `The kill-switch for ${whatOf(armed)} was not confirmed within two minutes and lapsed.`
              : `The first confirmation for ${whatOf(armed)} counted, but its answer with the key to the second was lost.`}{" "}
            What you typed is kept.
          </p>
          <div className={classes.buttons}>
            <Button
              size="compact-sm"
              color="red"
              loading={busy}
              onClick={() => void arms(armed, draft.reason)}
            >
              Arm it again
            </Button>
            <Button size="compact-sm" variant="default" onClick={drop}>
              Leave it
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
          onYes={() => void confirms(armed)}
          onNo={drop}
        />
      )}
      {step === "choose" && (
        <Choose
          reason={draft.reason}
          busy={busy}
          onReason={(reason) => keep({ reason, told: null })}
          onArm={(meant) => void arms(meant, draft.reason)}
        />
      )}
    </details>
  );
}

/** Never claims more than is known. */
function brokeOff(error: Error): string {
  if (!(error instanceof Problem)) return error.message;
  if (error.code === 0) return `It is not known whether this counted: ${error.message}`;
  if (error.code === 401)
    return "Not thrown: your sign-in had ended before this reached the gateway. What you typed is kept.";
  return `Not done: ${error.message}.`;
}

interface Confirming {
  armed: Armed;
  step: "first" | "second";
  typed: string;
  busy: boolean;
  onType: (typed: string) => void;
  onYes: () => void;
  onNo: () => void;
}

function Confirm({ armed, step, typed, busy, onType, onYes, onNo }: Confirming) {
  const tenant = useMe().data?.tenant_name ?? "";
  const word = wordOf(armed, tenant, step);
  const isRight = typed.trim() === word;
  const agents = `${armed.agents} ${armed.agents === 1 ? "agent" : "agents"}`;
  const warning = warningOf(armed);
  const sessions = `${armed.sessions} ${armed.sessions === 1 ? "session" : "sessions"}`;
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
            <b>Armed, not thrown.</b> It would hold {agents} in {sessions}: {whatOf(armed)}. Nothing is
            stopped yet.
          </>
        ) : (
          <>
            <b>Once more, and it is thrown.</b> {agents} of {whatOf(armed)} stop with their next message.
          </>
        )}{" "}
        <Left until={armed.expires_at} />, then it lapses by itself.
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
          No, leave them running
        </Button>
      </div>
    </form>
  );
}
