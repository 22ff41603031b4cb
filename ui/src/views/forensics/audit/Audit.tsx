// The audit log: every event, newest first and live, filtered by type, severity, actor, session and time. One
// event opens next to it, in the seed's shape, with its position in the chain and its proof.
import { useMemo, useRef, useState } from "react";
import { numberOf } from "~/proof/event";
import type { AuditEvent } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { usePaged } from "../usePaged";
import classes from "./Audit.module.css";
import { isAsked, queryOf, type Read, readAsked, readEvent, toneOf } from "./auditQuery";
import { EventPanel } from "./EventPanel";
import { FilterBar, NO_FILTER } from "./FilterBar";

const COLUMNS: readonly Column<Read>[] = [
  {
    id: "type",
    title: "Event",
    cell: (row) => {
      const { tone, mark } = toneOf(row.severity);
      return (
        <span className={classes.type} data-tone={tone}>
          <span aria-hidden>{mark}</span> {row.type.replaceAll("_", " ")}
        </span>
      );
    },
    width: 170,
  },
  {
    id: "severity",
    title: "Severity",
    cell: (row) => <Tag tone={toneOf(row.severity).tone}>{row.severityWord.toLowerCase()}</Tag>,
    width: 76,
    from: 880,
  },
  { id: "who", title: "Actor", cell: (row) => row.who, width: 150, from: 520 },
  { id: "summary", title: "Summary", cell: (row) => row.summary, from: 640 },
  { id: "at", title: "When", cell: (row) => <Ago at={row.at} />, width: 84 },
  {
    id: "number",
    title: "No.",
    cell: (row) => row.number.toLocaleString("en"),
    width: 78,
    figure: true,
    from: 380,
  },
];

const byNumber = (event: AuditEvent) => event.hash_chain.sequence_number;

export function Audit() {
  const [url, setUrl] = useUrl();
  const { type, sev, who, trace, within, since, until } = url;
  const request = useMemo(
    () => readAsked({ type, sev, who, trace, within, since, until }),
    [type, sev, who, trace, within, since, until],
  );
  // "The last hour" is relative to when it was chosen; the live top continues from there.
  const query = useMemo(() => queryOf(request, Date.now()), [request]);
  const [isLive, setLive] = useState(true);
  // Rows that move during keyboard navigation would make Enter open the wrong one.
  const [isWalked, setWalked] = useState(false);
  const { first, rows, more, busy, problem, fetchMore } = usePaged(
    "/v1/audit/tenant",
    query,
    byNumber,
    // With a type filter the gateway scans thousands of events for a page.
    isLive && !isWalked && (request.type ? 10_000 : 3_000),
  );
  const lines = useMemo(() => rows.map(readEvent).sort((a, b) => b.number - a.number), [rows]);
  const chosen = url.event ? numberOf(url.event) : Number(url.seq) || null;
  const field = useRef<HTMLInputElement>(null);
  const close = () => setUrl({ event: null, seq: null });
  useKeys(
    {
      f: { says: "Filter by event type", run: () => field.current?.focus() },
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
      ...(chosen !== null && { Backspace: { says: "Close the event", run: close } }),
    },
    "Audit log",
  );
  const types = useMemo(() => [...new Set(lines.map((line) => line.type))].sort(), [lines]);
  return (
    <section className={classes.view} aria-label="Audit log">
      <h1 className="unseen">Audit log</h1>
      <div className={classes.inside} data-open={(url.event ?? url.seq) !== undefined || undefined}>
        <div className={classes.main}>
          <FilterBar
            request={request}
            types={types}
            isLive={isLive}
            setLive={setLive}
            set={(changes) => setUrl(changes, true)}
            field={field}
          />
          {first.data ? (
            lines.length > 0 ? (
              // biome-ignore lint/a11y/noStaticElementInteractions: it only tracks the focus
              <div className={classes.table} onFocus={() => setWalked(true)} onBlur={() => setWalked(false)}>
                <Grid
                  label="Audit events"
                  columns={COLUMNS}
                  rows={lines}
                  keyOf={(row) => row.id}
                  current={lines.find((line) => line.number === chosen)?.id}
                  onOpen={(row) => setUrl({ event: row.id, seq: null }, chosen !== null)}
                  onEnd={fetchMore}
                />
              </div>
            ) : isAsked(request) ? (
              <Empty>
                {more ? "No matches among the newest events." : "No matching events."}{" "}
                <button type="button" className={classes.link} onClick={() => setUrl(NO_FILTER, true)}>
                  Show all
                </button>
              </Empty>
            ) : (
              <Empty command="observatory demo">
                No events yet. Every message, command and refusal becomes an event here; to see some:
              </Empty>
            )
          ) : first.error ? (
            <ErrorNotice problem={first.error} again={() => void first.refetch()} />
          ) : (
            <Loading rows={10} />
          )}
          <p className={classes.foot} role="status">
            {first.error && first.data && (
              <span className={classes.stale}>Not up to date: {first.error.message}</span>
            )}
            {problem && <span className={classes.stale}>Older ones did not come: {problem.message}</span>}
            <span>{lines.length.toLocaleString("en")} events shown</span>
            {isLive && isWalked && <span>New events wait while you are in the table.</span>}
            {more && (
              <button type="button" className={classes.link} disabled={busy} onClick={fetchMore}>
                {busy ? "searching older events…" : "search older events"}
              </button>
            )}
          </p>
        </div>
        {chosen !== null && (
          <aside className={classes.aside} aria-label="Event">
            <EventPanel
              key={chosen}
              number={chosen}
              id={url.event}
              go={(number) => setUrl({ seq: String(number), event: null }, true)}
              close={close}
            />
          </aside>
        )}
        {chosen === null && (url.event || url.seq) && (
          <aside className={classes.aside} aria-label="Event">
            <Empty>
              “{url.event ?? url.seq}” is not an event id or number.{" "}
              <button type="button" className={classes.link} onClick={close}>
                Close
              </button>
            </Empty>
          </aside>
        )}
      </div>
    </section>
  );
}
