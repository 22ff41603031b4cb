// Firing alerts, newest first: the subject, its value and threshold, and a link.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import classes from "./Alerts.module.css";
import { MARKS, TONES, unitOf } from "./rules";

export function FiringAlerts() {
  const query = useApi("/v1/alerts/open", { limit: 50 }, { every: 3_000, keep: true });
  const items = query.data?.items ?? [];
  return (
    <div className={classes.now}>
      <Panel
        title="Firing"
        aside={
          query.data && (items.length === 0 ? "none" : `${items.length}${query.data.next_cursor ? "+" : ""}`)
        }
      >
        <Loaded query={query} rows={1}>
          {({ items: open }) =>
            open.length === 0 ? (
              <p className={classes.calm}>✓ No rule is firing.</p>
            ) : (
              <ul className={classes.open} aria-label="Firing">
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
                      {one.muted && " · muted, no notification sent"}
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}
