// The trail of everything done here, live, each act linked to its event in the record.
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { useNames } from "~/widgets/people";
import classes from "./God.module.css";
import { type About, type Line, lineOf } from "./trail";

export function EventLink({ id, children = "in the record" }: { id: string; children?: React.ReactNode }) {
  return (
    <Link to={"/forensics/audit" as never} search={{ event: id } as never} className={classes.link}>
      {children}
    </Link>
  );
}

export function Trail({ about }: { about?: About }) {
  const asked = useAnswer("/v1/audit/acts", { about, limit: 200 }, { every: 4_000, keep: true });
  const names = useNames();
  const columns = useMemo(
    (): Column<Line>[] => [
      {
        id: "kind",
        title: "Act",
        width: 124,
        cell: ({ mark, tone, word }) => (
          <Tag tone={tone}>
            {mark} {word}
          </Tag>
        ),
      },
      { id: "text", title: "What", cell: (one) => <span title={one.text}>{one.text}</span> },
      { id: "by", title: "By", width: 110, from: 520, cell: (one) => names(one.by) },
      { id: "at", title: "When", width: 84, cell: (one) => <Ago at={one.at} /> },
      { id: "event", title: "Event", width: 92, from: 440, cell: (one) => <EventLink id={one.id} /> },
    ],
    [names],
  );
  return (
    <Panel
      title="Trail of what was done here"
      label="Trail"
      aside="every act is in the record, refused ones too"
    >
      <Shown asked={asked}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty command="observatory kill list">
              Nothing was done here yet. Every act, and every one that was refused, will stand here with its
              event. On the terminal:
            </Empty>
          ) : (
            <div className={classes.trail}>
              <Grid
                label="Acts in God Mode"
                columns={columns}
                rows={items.map((event) => lineOf(event, names))}
                keyOf={(one) => one.id}
              />
            </div>
          )
        }
      </Shown>
    </Panel>
  );
}
