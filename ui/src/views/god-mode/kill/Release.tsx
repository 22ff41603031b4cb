// Release of a kill switch: all of it, or some agent types of a wide one first. Types that stay stopped get
// their own kill switch before the wide one is released, so that none resumes by accident; typed
// confirmation, with a reason.
import { Button, Checkbox, SegmentedControl, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import { narrow, release } from "~/commands/kill";
import { showToast } from "~/commands/toasts";
import { noun, plural } from "~/plural";
import type { KillSwitchItem } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { useDraft } from "~/widgets/drafts";
import { useMe, useWhyNot } from "~/widgets/users";
import classes from "../God.module.css";
import { confirmationText, counted, inScope, type KillTarget, targetText } from "./engageSteps";

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
  const meant: KillTarget = { scope: one.scope, target: one.target ?? "" };
  const what = targetText(meant);
  const agents = useApi("/v1/agents", undefined, {
    enabled: one.scope !== "class",
    keep: true,
    every: 10_000, // a type that appeared since must be listed: types without their own kill switch resume
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
      showToast({
        tone: "alert",
        text: `The release was interrupted and ${what} is still stopped: ${(error as Error).message}`,
      });
    }
    setDone(null);
  };
  return (
    <div className={classes.way}>
      {one.scope !== "class" && kinds.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label="What to release"
          data={[
            { value: "all", label: "Everything" },
            { value: "part", label: "Some agent types first" },
          ]}
          value={isPart ? "part" : "all"}
          onChange={(value) => setPart(value === "part")}
        />
      )}
      {isPart && (
        <Checkbox.Group label="Agent types to resume" size="xs" value={goes} onChange={setGoes}>
          <div className={classes.checks}>
            {kinds.map(([kind, count]) => (
              <Checkbox key={kind} size="xs" value={kind} label={`${kind} (${count})`} />
            ))}
          </div>
        </Checkbox.Group>
      )}
      <TextInput
        size="xs"
        label="Reason for release"
        placeholder="fixed in 2.4.1"
        value={reason ?? ""}
        onChange={(event) => setReason(event.currentTarget.value || null)}
      />
      {ready ? (
        <ConfirmInline
          does={isPart ? `Resume ${plural(goes.length, "agent type")}` : `Release ${what}`}
          typed={confirmationText(meant, tenant, "first")}
          takesFocus={false}
          onYes={yes}
          onNo={onNo}
        >
          {isPart
            ? `${plural(stay.length, "other agent type gets", "other agent types get")} ${noun(stay.length, "its own kill switch", "their own kill switches")} first and ${noun(stay.length, "stays", "stay")} stopped; then this one is released.${untyped > 0 ? ` ${plural(untyped, "agent without a type resumes", "agents without a type resume")} too.` : ""}${one.scope === "cluster" ? " A type is stopped in every cluster." : ""}`
            : `${plural(one.held, "held message is", "held messages are")} sent in stages, oldest first, and the agents are resumed. This cannot be undone; stopping again requires a new kill switch.`}
          {done !== null && (
            <p role="status">
              {done} of {stay.length} have their own kill switch.
            </p>
          )}
        </ConfirmInline>
      ) : (
        <p className={classes.faint}>
          {!hasReason
            ? "Enter a reason; then type the name to release it."
            : goes.length === 0
              ? "Select at least one agent type."
              : "All types are selected: choose “Everything”."}
        </p>
      )}
    </div>
  );
}
