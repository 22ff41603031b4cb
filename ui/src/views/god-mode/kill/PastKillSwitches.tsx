// Past kill switches that no longer stop anything.
import { useMemo } from "react";
import type { KillSwitchItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNames } from "~/widgets/users";
import classes from "../God.module.css";
import { targetText } from "./engageSteps";

const STATES: Record<KillSwitchItem["state"], { word: string; tone: string }> = {
  armed: { word: "… armed", tone: "blocked" },
  confirmed: { word: "… confirmed once", tone: "blocked" },
  engaged: { word: "■ engaged", tone: "alert" },
  releasing: { word: "▸ releasing", tone: "blocked" },
  released: { word: "✓ released", tone: "good" },
  lapsed: { word: "· lapsed", tone: "idle" },
};

export function PastKillSwitches({ items }: { items: readonly KillSwitchItem[] }) {
  const names = useNames();
  const columns = useMemo(
    (): Column<KillSwitchItem>[] => [
      {
        id: "what",
        title: "What",
        cell: (one) => targetText({ scope: one.scope, target: one.target ?? "" }),
      },
      {
        id: "state",
        title: "State",
        width: 124,
        cell: ({ state }) => <Tag tone={STATES[state].tone}>{STATES[state].word}</Tag>,
      },
      { id: "by", title: "By", width: 96, from: 420, cell: (one) => names(one.requested_by) },
      {
        id: "at",
        title: "When",
        width: 82,
        cell: (one) => <Ago at={one.released_at ?? one.engaged_at ?? one.created_at} />,
      },
      {
        id: "why",
        title: "Reason",
        width: "26%",
        from: 520,
        cell: (one) => <span title={one.reason}>{one.reason}</span>,
      },
    ],
    [names],
  );
  return (
    <details className={classes.past}>
      <summary>History ({items.length})</summary>
      {items.length === 0 ? (
        <p className={classes.faint}>
          No kill switch has been engaged yet. On the command line: <code>observatory kill list</code>
        </p>
      ) : (
        <div className={classes.pastGrid}>
          <Grid label="Past kill switches" columns={columns} rows={items} keyOf={(one) => one.kill_id} />
        </div>
      )}
    </details>
  );
}
