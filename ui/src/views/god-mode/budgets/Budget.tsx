// One budget, or a new one: caps, validation errors, and saving with optimistic concurrency.

import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { refetch } from "~/api/queries";
import { putBudget, removeBudget } from "~/commands/budgets";
import type { BudgetItem, BurnAnswer } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { dateClock } from "~/widgets/clock";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { money } from "~/widgets/format";
import { Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import access from "../access/Access.module.css";
import { Close } from "../access/Users";
import classes from "./Budgets.module.css";
import {
  BLANK,
  bodyOf,
  nameOf,
  nearness,
  type Period,
  paceOf,
  type Scope,
  type Typed,
  typedOf,
} from "./budget";
import { Spent } from "./Spent";

interface Props {
  one: BudgetItem | null;
  burn?: BurnAnswer | undefined;
  onClose: (budget_id: string | null) => void;
}
/** The caps it was started from are kept with the draft: changes in between are not overwritten. */
interface KeptDraft {
  typed: Typed;
  before: BudgetItem | null;
}

export function Budget({ one, burn, onClose }: Props) {
  const names = useNames();
  const denied = useWhyNot("operate");
  const [text, setText] = useDraft(`god:budget:${one?.budget_id ?? "new"}`);
  const [stale, setStale] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const kept = text === null ? null : (JSON.parse(text) as KeptDraft);
  const typed = kept?.typed ?? (one ? typedOf(one) : BLANK);
  const before = kept ? kept.before : one;
  const set = (changes: Partial<Typed>) =>
    setText(JSON.stringify({ typed: { ...typed, ...changes }, before }));
  const read = bodyOf(typed);
  const fault = "fault" in read ? read.fault : null;
  const name = one ? nameOf(one) : nameOf({ scope: typed.scope, target: typed.target });
  const save = async () => {
    if ("fault" in read) return;
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason !== "stale_budget") return false;
      setStale(true);
      refetch("/v1/budgets");
      return true;
    };
    const saved = await putBudget(read.body, before, name, refused);
    setBusy(false);
    if (!saved) return;
    setStale(false);
    setText(null);
    onClose(saved.budget_id);
  };
  const overs = () => {
    setText(JSON.stringify({ typed, before: one }));
    setStale(false);
  };
  return (
    <Panel title={one ? `Budget of ${name}` : "New budget"} aside={<Close onClick={() => onClose(null)} />}>
      <form
        className={access.part}
        aria-label={one ? `Budget of ${name}` : "New budget"}
        onSubmit={(event) => {
          event.preventDefault();
          if (!fault && kept && denied === undefined) void save();
        }}
      >
        {one && (
          <>
            <Spent one={one} />
            <p className={access.says}>
              {money(one.spent)} spent{one.spender && `, the most by ${one.spender}`}; {nearness(one).word};{" "}
              {paceOf(burn?.budgets.find((each) => each.budget_id === one.budget_id))}
              {one.resets_at && `; resets ${dateClock(one.resets_at)}`}. Set <Ago at={one.updated_at} /> by{" "}
              {names(one.updated_by)}.
            </p>
          </>
        )}
        {stale && (
          <div className={access.trouble} role="alert">
            <p className={access.trouble}>
              {one
                ? `! Someone else changed this budget (soft ${one.soft ?? "none"}, hard ${one.hard ?? "none"} now).`
                : "! A budget for this target already exists: select it in the list to change it."}{" "}
              Your input is kept, not saved.
            </p>
            {one && (
              <Button size="compact-sm" variant="default" onClick={overs}>
                Overwrite with mine
              </Button>
            )}
          </div>
        )}
        {!one && (
          <>
            <NativeSelect
              size="xs"
              label="Scope"
              data={["tenant", "cluster", "session", "agent"]}
              value={typed.scope}
              onChange={(event) => set({ scope: event.currentTarget.value as Scope })}
            />
            {typed.scope !== "tenant" && (
              <TextInput
                size="xs"
                label={`Which ${typed.scope}`}
                description={
                  typed.scope === "cluster" ? undefined : `* gives each ${typed.scope} its own cap`
                }
                value={typed.target}
                onChange={(event) => set({ target: event.currentTarget.value })}
              />
            )}
            <NativeSelect
              size="xs"
              label="Period (UTC)"
              data={["none", "daily", "monthly"]}
              value={typed.period}
              onChange={(event) => set({ period: event.currentTarget.value as Period })}
            />
          </>
        )}
        <div className={classes.figures}>
          <TextInput
            size="xs"
            label="Soft cap, $"
            inputMode="decimal"
            value={typed.soft}
            disabled={denied !== undefined}
            onChange={(event) => set({ soft: event.currentTarget.value })}
          />
          <TextInput
            size="xs"
            label="Hard cap, $"
            inputMode="decimal"
            value={typed.hard}
            disabled={denied !== undefined}
            onChange={(event) => set({ hard: event.currentTarget.value })}
          />
        </div>
        {kept && fault && <p className={access.says}>{fault}</p>}
        {denied && <p className={access.says}>{denied}</p>}
        <div className={access.buttons}>
          <Button
            type="submit"
            size="compact-sm"
            loading={busy}
            disabled={denied !== undefined || kept === null || fault !== null}
            title={denied ?? fault ?? undefined}
          >
            {one ? "Save caps" : "Set budget"}
          </Button>
          {kept && (
            <Button size="compact-sm" variant="default" onClick={() => setText(null)}>
              Discard
            </Button>
          )}
          {one && (
            <Button
              size="compact-sm"
              variant="default"
              disabled={denied !== undefined}
              title={denied}
              aria-expanded={isAsking}
              onClick={() => setAsking(!isAsking)}
            >
              Remove…
            </Button>
          )}
        </div>
        {isAsking && one && (
          <ConfirmInline
            does="Remove budget"
            onYes={async () => {
              if (await removeBudget(one.budget_id, name)) onClose(null);
            }}
            onNo={() => setAsking(false)}
          >
            From the next message on, this budget no longer limits {name}. If you set it again, spend counts
            from zero.
          </ConfirmInline>
        )}
      </form>
    </Panel>
  );
}
