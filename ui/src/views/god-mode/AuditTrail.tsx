// The audit trail of God Mode, live, each action linked to its audit event.
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import classes from "./God.module.css";
import { type About, type Line, lineOf } from "./trail";

export function EventLink({ id, children = "view event" }: { id: string; children?: React.ReactNode }) {
  return (
    <Link to={"/forensics/audit" as never} search={{ event: id } as never} className={classes.link}>
      {children}
    </Link>
  );
}

export function AuditTrail({ about }: { about?: About }) {
  const query = useApi("/v1/audit/acts", { about, limit: 200 }, { every: 4_000, keep: true });
  const names = useNames();
  const columns = useMemo(
    (): Column<Line>[] => [
      {
        id: "kind",
        title: "Action",
        width: 124,
        cell: ({ mark, tone, word }) => (
          <Tag tone={tone}>
            {mark} {word}
          </Tag>
        ),
      },
      { id: "text", title: "Details", cell: (one) => <span title={one.text}>{one.text}</span> },
      { id: "by", title: "By", width: 110, from: 520, cell: (one) => names(one.by) },
      { id: "at", title: "When", width: 84, cell: (one) => <Ago at={one.at} /> },
      { id: "event", title: "Event", width: 92, from: 440, cell: (one) => <EventLink id={one.id} /> },
    ],
    [names],
  );
  return (
    <Panel title="Audit trail" label="Audit trail" aside="every action is recorded, refused ones too">
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty command="observatory kill list">
              No actions yet. Every action, refused ones included, appears here with its audit event. On the
              command line:
            </Empty>
          ) : (
            <div className={classes.trail}>
              <Grid
                label="God Mode actions"
                columns={columns}
                rows={items.map((event) => lineOf(event, names))}
                keyOf={(one) => one.id}
              />
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}
