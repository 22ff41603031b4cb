// Stuck sessions: since when and why, each a link. Live ones at once, older ones by query.
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { exact } from "~/widgets/clock";
import { span } from "~/widgets/format";
import { useNow } from "~/widgets/now";
import { Panel } from "~/widgets/Panel";
import classes from "./Aside.module.css";
import { goalOf, rowOf, type SessionRow, whyStuck } from "./session";

const SHOWN = 12;

/** Stuck sessions, the longest first. Live data takes precedence over fetched data. */
export function standing(live: Iterable<SessionRow>, request: readonly SessionRow[]): SessionRow[] {
  const rows = new Map(request.map((row) => [row.session_id, row]));
  for (const row of live) rows.set(row.session_id, row);
  return [...rows.values()]
    .filter((row) => row.stuck)
    .sort((a, b) => (a.stuck_since ?? "").localeCompare(b.stuck_since ?? ""));
}

export function StuckSessions({ live, onAll }: { live: readonly SessionRow[]; onAll: () => void }) {
  const request = useApi("/v1/sessions/stuck", { limit: 50 }, { every: 30_000, keep: true });
  const rows = useMemo(
    () =>
      standing(
        live,
        (request.data?.items ?? []).map((item) => rowOf(item as SessionRow)),
      ),
    [live, request.data],
  );
  return (
    <Panel title="Stuck sessions" aside={rows.length > 0 ? rows.length : undefined}>
      {rows.length === 0 ? (
        <p className={classes.calm}>No stuck sessions.</p>
      ) : (
        <ul className={classes.list}>
          {rows.slice(0, SHOWN).map((row) => (
            <li key={row.session_id} className={classes.item}>
              <Link
                to="/sessions/$sessionId"
                params={{ sessionId: row.session_id }}
                className={classes.link}
                title={row.session_id}
              >
                {goalOf(row)}
              </Link>
              <span className={classes.faint}>
                {whyStuck(row.stuck_reason)}, <For since={row.stuck_since} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {rows.length > SHOWN && (
        <button type="button" className={classes.more} onClick={onAll}>
          show all {rows.length} in the table
        </button>
      )}
    </Panel>
  );
}

function For({ since }: { since: string | null }) {
  const now = useNow();
  if (since === null) return "start unknown";
  return (
    <time dateTime={since} title={`since ${exact(since)}`}>
      for {span(now - Date.parse(since))}
    </time>
  );
}
