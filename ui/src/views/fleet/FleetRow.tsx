// One agent as a row, with its actions. Rendered again only when its own row changed.
import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { memo, useState } from "react";
import { pauseAndInspect, pauseEverywhere } from "~/commands/agents";
import { useUrl } from "~/useUrl";
import { Ago, Money } from "~/widgets/Figures";
import { short } from "~/widgets/format";
import { Mark } from "~/widgets/Mark";
import { useWhyNot } from "~/widgets/users";
import { pausable } from "./alertText";
import classes from "./FleetList.module.css";
import { type Row, worstAlarm } from "./rows";

interface Props {
  row: Row;
  index: number;
  reached: boolean;
  peeked: boolean;
  replayed: boolean;
  onReach: (index: number) => void;
}

const LIVELINESS: Record<Row["liveness"], string> = {
  healthy: "♥ healthy",
  zombie: "! overdue",
  evicted: "× evicted",
  unknown: "? no heartbeat yet",
};

function same(before: Props, after: Props): boolean {
  const { row: a, ...was } = before;
  const { row: b, ...is } = after;
  return (
    (Object.keys(was) as (keyof typeof was)[]).every((name) => was[name] === is[name]) &&
    (Object.keys(a) as (keyof Row)[]).every((name) => a[name] === b[name])
  );
}

export const FleetRow = memo(function FleetRow({ row, index, reached, peeked, replayed, onReach }: Props) {
  const [, setUrl] = useUrl();
  const open = () => setUrl({ peek: `agent:${row.id}` });
  const worst = worstAlarm(row.alarms);
  return (
    <tr
      className={classes.row}
      data-index={index}
      aria-rowindex={index + 2}
      aria-current={peeked || undefined}
      tabIndex={reached ? 0 : -1}
      onFocus={() => onReach(index)}
      onClick={open}
    >
      <td data-column="state" title={row.reason}>
        <Mark state={row.state} />
      </td>
      <th scope="row" data-column="name" title={row.name}>
        {row.name}
      </th>
      <td data-column="type">{row.type || "–"}</td>
      <td data-column="cluster">{row.cluster || "–"}</td>
      <td data-column="liveness">{LIVELINESS[row.liveness]}</td>
      <td data-column="rate" data-figure>
        {short(Math.round(row.rate * 100) / 100)}
      </td>
      <td data-column="cost" data-figure>
        <Money dollars={row.cost} />
      </td>
      <td data-column="failures" data-figure>
        {row.failures === undefined ? "–" : short(Math.round(row.failures))}
      </td>
      <td data-column="alarms" data-figure title={row.alarms.map((alarm) => alarm.text).join("\n")}>
        {row.alarms.length > 0 ? `! ${row.alarms.length}` : "0"}
      </td>
      <td data-column="seen" data-figure>
        {replayed ? "–" : <Ago at={row.seen} />}
      </td>
      <td data-column="acts">
        {!replayed && (
          <Acts
            row={row}
            session={worst?.session_id ?? null}
            urgent={worst !== null && pausable(worst.kind)}
          />
        )}
      </td>
    </tr>
  );
}, same);

function Acts({ row, session, urgent }: { row: Row; session: string | null; urgent: boolean }) {
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const run = async (event: React.MouseEvent) => {
    event.stopPropagation();
    setBusy(true);
    if (!urgent) await pauseEverywhere(row.id);
    else {
      const found = await pauseAndInspect(row.id, session);
      if (found)
        await navigate({
          to: "/sessions/$sessionId",
          params: { sessionId: found.session_id },
          search: (found.step ? { step: found.step } : {}) as never,
        });
    }
    setBusy(false);
  };
  return (
    <Button
      size="compact-xs"
      variant={urgent ? "filled" : "default"}
      loading={busy}
      disabled={row.liveness === "evicted" || denied !== undefined}
      title={denied}
      aria-label={urgent ? `Pause and inspect ${row.name}` : `Pause ${row.name} everywhere`}
      onClick={(event) => void run(event)}
    >
      {urgent ? "Pause and inspect" : "Pause"}
    </Button>
  );
}
