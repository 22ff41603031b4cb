// Session Cluster Manager, the list (view 2): alerts to act on, all sessions, their cost. The URL holds
// search, filters, order, the sessions selected for comparison, and the peek.
import { Button } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useRef, useState } from "react";
import { live } from "~/live/connection";
import { useConnection } from "~/live/useLive";
import { useKeys } from "~/shell/keys";
import { usePeekList } from "~/shell/peek";
import { useUrl } from "~/useUrl";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { CostAgainstCap } from "./list/CostAgainstCap";
import { FilterBar, NO_FILTER } from "./list/FilterBar";
import { isFiltered, readFilters } from "./list/filters";
import { LoopAlerts } from "./list/LoopAlerts";
import { PauseChoice } from "./list/PauseChoice";
import { StuckSessions } from "./list/StuckSessions";
import { Table } from "./list/Table";
import { useCursor } from "./list/useCursor";
import { useSessions } from "./list/useSessions";
import classes from "./Sessions.module.css";

export function Sessions() {
  const [url, setUrl] = useUrl();
  const { q, status, severity, stuck, cap, sort } = url;
  const filters = useMemo(
    () => readFilters({ q, status, severity, stuck, cap, sort }),
    [q, status, severity, stuck, cap, sort],
  );
  const sessions = useSessions(filters, url.older === "yes");
  const byId = useMemo(() => new Map(sessions.live.map((row) => [row.session_id, row])), [sessions.live]);
  const chosen = useMemo(() => (url.chosen ?? "").split(",").filter(Boolean), [url.chosen]);
  const { cursor, at, point, move, togglePeek } = useCursor(sessions.rows);
  const [pausing, setPausing] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const navigate = useNavigate();
  usePeekList(
    useMemo(() => sessions.rows.slice(0, 300).map((row) => `session:${row.session_id}`), [sessions.rows]),
  );

  const choose = useCallback(
    (id: string) => {
      const next = chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen.slice(-1), id];
      setUrl({ chosen: next.join(",") || null }, true);
    },
    [chosen, setUrl],
  );
  const open = (id: string) => void navigate({ to: "/sessions/$sessionId", params: { sessionId: id } });
  const compare = () => {
    const [left, right] = chosen;
    void navigate({ to: "/compare", search: { left, right } as never });
  };
  useKeys(
    {
      j: { says: "Next session", run: () => move(1) },
      k: { says: "Previous session", run: () => move(-1) },
      ArrowDown: { says: "Next session", run: () => move(1) },
      ArrowUp: { says: "Previous session", run: () => move(-1) },
      Enter: { says: "Open session", run: () => at && open(at) },
      Space: { says: "Peek at the session", run: togglePeek },
      p: { says: "Pause an agent of the session", run: () => setPausing(at) },
      x: { says: "Select the session for comparison", run: () => at && choose(at) },
      c: { says: "Compare the two selected", run: () => chosen.length === 2 && compare() },
      f: { says: "Search sessions", run: () => field.current?.focus() },
    },
    "Sessions",
  );

  return (
    <section className={classes.view} aria-label="Session Cluster Manager">
      <h1 className="unseen">Session Cluster Manager</h1>
      <div className={classes.inside}>
        <div className={classes.main}>
          <LoopAlerts sessions={byId} />
          <FilterBar
            filters={filters}
            counts={sessions.counts}
            set={(changes) => setUrl(changes, true)}
            field={field}
          />
          {chosen.length > 0 && (
            <div className={classes.chosen} role="status">
              <span>
                {chosen.length === 1
                  ? "1 session selected; select a second to compare."
                  : "2 sessions selected."}
              </span>
              <Button size="compact-xs" disabled={chosen.length !== 2} onClick={compare}>
                Compare
              </Button>
              <Button size="compact-xs" variant="subtle" onClick={() => setUrl({ chosen: null }, true)}>
                {" "}
                Clear selection{" "}
              </Button>
            </div>
          )}
          <Table
            rows={sessions.rows}
            filters={filters}
            cursor={cursor}
            chosen={chosen}
            onSort={(next) => setUrl({ sort: next }, true)}
            onPoint={point}
            onChoose={choose}
            foot={<Foot sessions={sessions} q={filters.q} filtered={isFiltered(filters)} setUrl={setUrl} />}
          />
        </div>
        <aside className={classes.aside} aria-label="Cost and stuck sessions">
          <CostAgainstCap live={sessions.live} />
          <StuckSessions live={sessions.live} onAll={() => setUrl({ ...NO_FILTER, stuck: "yes" })} />
        </aside>
      </div>
      {pausing && <PauseChoice sessionId={pausing} onClose={() => setPausing(null)} />}
    </section>
  );
}

interface Footed {
  sessions: ReturnType<typeof useSessions>;
  q: string;
  filtered: boolean;
  setUrl: (changes: Record<string, string | null>, replace?: boolean) => void;
}

const AWAY = new Error("The gateway is unreachable, so no sessions are shown. Nothing is lost; retrying.");

/** Below the rows: the count, older ones, and a link to the archive search. */
function Foot({ sessions, q, filtered, setUrl }: Footed) {
  const { rows, ready, hasOlder, loading, problem } = sessions;
  const connection = useConnection();
  if (!ready && (connection === "waiting" || connection === "refused"))
    return <ErrorNotice problem={AWAY} again={() => live.retry()} />;
  if (!ready) return <Loading rows={6} />;
  const older = () => {
    setUrl({ older: "yes" }, true);
    sessions.loadOlder();
  };
  return (
    <>
      {rows.length === 0 && sessions.live.length === 0 && !filtered && (
        <Empty command="observatory demo">
          No sessions yet. A session starts with an agent's first message; to start a demo mesh:
        </Empty>
      )}
      {rows.length === 0 && filtered && (
        <span>No matching sessions. Clear a filter, or search all messages.</span>
      )}
      {rows.length > 0 && <span>{rows.length.toLocaleString("en")} sessions</span>}
      {hasOlder && (
        <Button size="compact-xs" variant="default" loading={loading} onClick={older}>
          Load older
        </Button>
      )}
      {problem && <span role="alert">Older ones could not be read: {problem.message}</span>}
      {q && (
        <Link to="/forensics" search={{ q } as never} className={classes.link}>
          Search all messages for “{q}”
        </Link>
      )}
    </>
  );
}
