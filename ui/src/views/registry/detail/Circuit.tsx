// The circuit breaker of a capability as a small state diagram: its state and reason, and its manual switch.
import { Button } from "@mantine/core";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { closeCircuit, openCircuit } from "~/commands/registry";
import type { BreakerItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Loaded, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import { BREAKERS } from "../registryRows";
import classes from "./Detail.module.css";

const MEANS = {
  closed: "Work is routed. Too many failures in a window open it.",
  open: "Its work is queued; nothing is lost.",
  half_open: "One probe was sent: success closes the circuit, failure opens it again.",
};
const ARROWS = { closed: "failures →", open: "after a timeout →", half_open: "↩ probe result" };

export function Circuit({ capability }: { capability: string }) {
  const query = useApi("/v1/breakers", undefined, { every: 3_000, keep: true });
  return (
    <Panel title="Circuit breaker">
      <Loaded query={query} rows={2}>
        {({ items }) => (
          <State capability={capability} row={items.find((one) => one.capability === capability) ?? null} />
        )}
      </Loaded>
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
      <CircuitReason row={row} />
      <Switch capability={capability} row={row} />
    </div>
  );
}

function CircuitReason({ row }: { row: BreakerItem | null }) {
  const names = useNames();
  if (!row)
    return (
      <p className={classes.calm}>
        None yet: it is created with the first work addressed to this type, or with weights.
      </p>
    );
  const calls = row.failures + row.successes;
  return (
    <p className={classes.says} role="status">
      {MEANS[row.state]}
      {row.reason && ` Reason: ${row.reason}`}
      {row.forced_by && ` by ${names(row.forced_by)}`}
      {row.opened_at && (
        <>
          , <Ago at={row.opened_at} />
        </>
      )}
      {row.reason && "."}
      {row.forced_by && " It stays open until a person closes it."}
      <br />
      <span className={classes.faint}>
        {calls === 0 ? "no outcome" : `${row.failures} of ${calls} outcomes failed`} in the window since{" "}
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
          {isShut ? "Force open…" : "Force close…"}
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
              ? `Work addressed to type:${capability} is queued from the next message on, in every session, until a person closes the circuit. Messages addressed to an agent by name are still delivered.`
              : `Work for ${capability}, queued work included, is sent at once, although the cause may persist. The failure count is reset.`}
          </p>
          <div className={classes.buttons}>
            <Button size="compact-sm" color="red" loading={busy} onClick={() => void run()}>
              {asking === "open"
                ? `Force open, queue work for ${capability}`
                : `Force close, send work for ${capability}`}
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setAsking(null)}>
              Cancel
            </Button>
          </div>
        </div>
      )}
    </>
  );
}
