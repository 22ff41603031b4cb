// What rules fire for now, newest first: the subject, its figure and its limit, and where to look.
import { Link } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Panel, Shown } from "~/widgets/Panel";
import classes from "./Alerts.module.css";
import { MARKS, TONES, unitOf } from "./rules";

export function OpenNow() {
  const asked = useAnswer("/v1/alerts/open", { limit: 50 }, { every: 3_000, keep: true });
  const items = asked.data?.items ?? [];
  return (
    <div className={classes.now}>
      <Panel
        title="Amiss now"
        aside={
          asked.data &&
          (items.length === 0 ? "nothing" : `${items.length}${asked.data.next_cursor ? "+" : ""}`)
        }
      >
        <Shown asked={asked} rows={1}>
          {({ items: open }) =>
            open.length === 0 ? (
              <p className={classes.calm}>✓ No rule fires.</p>
            ) : (
              <ul className={classes.open} aria-label="Amiss now">
                {open.map((one) => (
                  <li key={`${one.rule_id} ${one.subject}`}>
                    <Tag tone={TONES[one.severity]}>
                      {MARKS[one.severity]} {one.severity}
                    </Tag>
                    <Link to={one.link.startsWith("/") && !one.link.startsWith("//") ? one.link : "/fleet"}>
                      {one.name}: {one.subject}
                    </Link>
                    <span>
                      {one.value} {unitOf(Number(one.value), one.unit)} (limit {one.threshold})
                    </span>
                    <span className={classes.faint}>
                      <Ago at={one.since} />
                      {one.muted && " · muted, nobody outside was told"}
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
        </Shown>
      </Panel>
    </div>
  );
}
