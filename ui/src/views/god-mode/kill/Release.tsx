// The way out: all of it, or of a wide stop some classes first. What shall stay stopped gets a switch of its own
// before the wide one is released, so that nobody goes on by accident; typed once more, with a reason.
import { Button, Checkbox, SegmentedControl, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { narrow, release } from "~/acts/kill";
import { say } from "~/acts/toasts";
import { useAnswer } from "~/api/questions";
import type { KillSwitchItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { useMe, useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import classes from "../God.module.css";
import { counted, inScope, type Meant, whatOf, wordOf } from "./throwing";

export function Release({ one, startsOpen }: { one: KillSwitchItem; startsOpen: boolean }) {
  const [isOpen, setOpen] = useState(startsOpen);
  const denied = useWhyNot("admin");
  return (
    <>
      <div className={classes.buttons}>
        <Button
          variant="default"
          disabled={denied !== undefined}
          title={denied}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          Release…
        </Button>
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
      {isOpen && denied === undefined && <Way one={one} onNo={() => setOpen(false)} />}
    </>
  );
}

function Way({ one, onNo }: { one: KillSwitchItem; onNo: () => void }) {
  const [reason, setReason] = useDraft(`god:release:${one.kill_id}`);
  const [isPart, setPart] = useState(false);
  const [goes, setGoes] = useState<string[]>([]);
  const [done, setDone] = useState<number | null>(null);
  const tenant = useMe().data?.tenant_name ?? "";
  const meant: Meant = { scope: one.scope, target: one.target ?? "" };
  const what = whatOf(meant);
  const agents = useAnswer("/v1/agents", undefined, {
    enabled: one.scope !== "class",
    keep: true,
    every: 10_000, // a class that came since must be shown: who has no switch of their own goes on
  });
  const inside = useMemo(
    () =>
      (agents.data?.items ?? []).filter((agent) =>
        inScope({ scope: one.scope, target: one.target ?? "" }, agent),
      ),
    [agents.data, one.scope, one.target],
  );
  const kinds = counted(inside, (agent) => agent.agent_type);
  const untyped = inside.filter((agent) => agent.agent_type === null).length;
  const stay = kinds
    .filter(([kind]) => !goes.includes(kind))
    .map(([target]) => ({ scope: "class" as const, target }));
  const hasReason = (reason ?? "").trim() !== "";
  const ready = hasReason && (!isPart || (goes.length > 0 && stay.length > 0));
  const yes = async () => {
    const why = (reason ?? "").trim();
    try {
      const answer = isPart
        ? await narrow(one.kill_id, what, stay, why, setDone)
        : await release(one.kill_id, what, why);
      if (answer) setReason(null);
    } catch (error) {
      say({
        tone: "alert",
        text: `The release broke off and ${what} is still stopped: ${(error as Error).message}`,
      });
    }
    setDone(null);
  };
  return (
    <div className={classes.way}>
      {one.scope !== "class" && kinds.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label="How much goes on"
          data={[
            { value: "all", label: "All of it" },
            { value: "part", label: "Some classes first" },
          ]}
          value={isPart ? "part" : "all"}
          onChange={(value) => setPart(value === "part")}
        />
      )}
      {isPart && (
        <Checkbox.Group label="These go on" size="xs" value={goes} onChange={setGoes}>
          <div className={classes.checks}>
            {kinds.map(([kind, count]) => (
              <Checkbox key={kind} size="xs" value={kind} label={`${kind} (${count})`} />
            ))}
          </div>
        </Checkbox.Group>
      )}
      <TextInput
        size="xs"
        label="Why it may go on"
        placeholder="fixed in 2.4.1"
        value={reason ?? ""}
        onChange={(event) => setReason(event.currentTarget.value || null)}
      />
      {ready ? (
        <Sure
          does={
            isPart ? `Let ${goes.length} ${goes.length === 1 ? "class" : "classes"} go on` : `Release ${what}`
          }
          typed={wordOf(meant, tenant, "first")}
          takesFocus={false}
          onYes={yes}
          onNo={onNo}
        >
          {isPart
            ? `${stay.length} other ${stay.length === 1 ? "class gets" : "classes get"} a kill-switch of ${stay.length === 1 ? "its" : "their"} own first and ${stay.length === 1 ? "stays" : "stay"} stopped; then this one is released.${untyped > 0 ? ` ${untyped} without a type ${untyped === 1 ? "goes" : "go"} on too.` : ""}${one.scope === "cluster" ? " A class is stopped in every cluster." : ""}`
            : `${one.held.toLocaleString("en")} held ${one.held === 1 ? "message goes" : "messages go"} on in stages, oldest first, and the agents are told to start. It cannot be called back; stopping again takes a new kill-switch.`}
          {done !== null && (
            <p role="status">
              {done} of {stay.length} have their own switch.
            </p>
          )}
        </Sure>
      ) : (
        <p className={classes.faint}>
          {!hasReason
            ? "Say why; then type the name to release it."
            : goes.length === 0
              ? "Choose at least one class."
              : "That is all of them: choose “All of it”."}
        </p>
      )}
    </div>
  );
}
