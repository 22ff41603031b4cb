// The circuit of a capability as a small state diagram: where it stands and why, and its manual switch.
import { Button } from "@mantine/core";
import { useState } from "react";
import { closeCircuit, openCircuit } from "~/acts/registry";
import { useAnswer } from "~/api/questions";
import type { BreakerItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Panel, Shown } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { BREAKERS } from "../pages";
import classes from "./Detail.module.css";

const MEANS = {
  closed: "Work passes. Too many failures in a window open it.",
  open: "Work for it waits; nothing is lost.",
  half_open: "One probe is out: if it succeeds the circuit closes, if it fails it opens again.",
};
const ARROWS = { closed: "fails →", open: "after a while →", half_open: "↩ probe decides" };

export function Circuit({ capability }: { capability: string }) {
  const asked = useAnswer("/v1/breakers", undefined, { every: 3_000, keep: true });
  return (
    <Panel title="Circuit breaker">
      <Shown asked={asked} rows={2}>
        {({ items }) => (
          <State capability={capability} row={items.find((one) => one.capability === capability) ?? null} />
        )}
      </Shown>
    </Panel>
  );
}

function State({ capability, row }: { capability: string; row: BreakerItem | null }) {
  const state = row?.state ?? null;
  return (
    <div className={classes.part}>
      <ol className={classes.diagram} aria-label="States of the circuit">
        {(["closed", "open", "half_open"] as const).map((one) => (
          <li key={one} data-tone={BREAKERS[one].tone} aria-current={state === one || undefined}>
            <b>
              <span aria-hidden>{BREAKERS[one].mark}</span> {BREAKERS[one].word}
            </b>
            <span className={classes.arrow} aria-hidden>
              {ARROWS[one]}
            </span>
          </li>
        ))}
      </ol>
      <Why row={row} />
      <Switch capability={capability} row={row} />
    </div>
  );
}

function Why({ row }: { row: BreakerItem | null }) {
  const names = useNames();
  if (!row)
    return (
      <p className={classes.calm}>
        It has none yet: it comes with the first work addressed to this type, or with weights.
      </p>
    );
  const calls = row.failures + row.successes;
  return (
    <p className={classes.says} role="status">
      {MEANS[row.state]}
      {row.reason && ` Why: ${row.reason}`}
      {row.forced_by && ` by ${names(row.forced_by)}`}
      {row.opened_at && (
        <>
          , <Ago at={row.opened_at} />
        </>
      )}
      {row.reason && "."}
      {row.forced_by && " It stays so until a person closes it."}
      <br />
      <span className={classes.faint}>
        {calls === 0 ? "no outcome" : `${row.failures} of ${calls} outcomes failed`} in the window that began{" "}
        <Ago at={row.window_started_at} />
      </span>
    </p>
  );
}

function Switch({ capability, row }: { capability: string; row: BreakerItem | null }) {
  const [asking, setAsking] = useState<"open" | "close" | null>(null);
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const isShut = row === null || row.state === "closed";
  const run = async () => {
    setBusy(true);
    await (asking === "open" ? openCircuit(capability) : closeCircuit(capability));
    setBusy(false);
    setAsking(null);
  };
  const does = isShut ? "open" : "close";
  return (
    <>
      <div className={classes.buttons}>
        <Button
          size="compact-sm"
          variant="default"
          disabled={denied !== undefined}
          title={denied}
          aria-expanded={asking !== null}
          onClick={() => setAsking(asking ? null : does)}
        >
          {isShut ? "Open by hand…" : "Close by hand…"}
        </Button>
        {!isShut && row?.forced_by === null && (
          <Button
            size="compact-sm"
            variant="default"
            disabled={denied !== undefined}
            title={denied}
            onClick={() => setAsking(asking === "open" ? null : "open")}
          >
            Keep it open…
          </Button>
        )}
        {denied && <span className={classes.faint}>{denied}</span>}
      </div>
      {asking && (
        <div className={classes.sure}>
          <p>
            {asking === "open"
              ? `Work addressed to type:${capability} waits from the next message on, in every session, until a person closes the circuit. What is addressed to an agent by name still goes to it.`
              : `Work for ${capability} goes out again at once, also what waited, though the reason may still hold. Failures are counted anew.`}
          </p>
          <div className={classes.buttons}>
            <Button size="compact-sm" color="red" loading={busy} onClick={() => void run()}>
              {asking === "open"
                ? `Open it, hold work for ${capability}`
                : `Close it, let work for ${capability} out`}
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setAsking(null)}>
              No, leave it
            </Button>
          </div>
        </div>
      )}
    </>
  );
}
