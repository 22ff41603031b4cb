// The webhook log: outbound deliveries and inbound calls in one list with state, signature and attempts; next
// to it the selected one, with its exact bytes. The URL holds filters and selection.
import { Link } from "@tanstack/react-router";
import { useMemo, useRef } from "react";
import { useApi } from "~/api/queries";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { FilterBar, NO_FILTER } from "./FilterBar";
import { InboundCall } from "./InboundCall";
import { type Entry, readFilters } from "./log";
import { OutboundDelivery } from "./OutboundDelivery";
import { Signed } from "./Signed";
import { useLog } from "./useLog";
import classes from "./Webhooks.module.css";

const COLUMNS: readonly Column<Entry>[] = [
  {
    id: "who",
    title: "Endpoint",
    width: "22%",
    cell: ({ way, who }) => (
      <span className={classes.who} title={way === "out" ? `sent to ${who}` : `called ${who}`}>
        <span className={classes.way}>{way === "out" ? "→" : "←"}</span>
        <span className="unseen">{way === "out" ? "sent to" : "received from"}</span>
        {who}
      </span>
    ),
  },
  { id: "state", title: "State", width: 120, cell: ({ state }) => <Signed sign={state} /> },
  { id: "event", title: "Event", width: "18%", from: 520, cell: ({ event }) => event },
  {
    id: "signature",
    title: "Signature",
    width: 112,
    from: 620,
    cell: ({ signature }) => <Signed sign={signature} />,
  },
  { id: "tries", title: "Attempts", width: 52, from: 700, figure: true, cell: ({ tries }) => tries },
  {
    id: "says",
    title: "Response",
    from: 820,
    cell: ({ says }) => <span title={says}>{says || "–"}</span>,
  },
  { id: "at", title: "When", width: 84, figure: true, cell: ({ at }) => <Ago at={at} /> },
];
const keyOf = (entry: Entry) => entry.id;

export function Webhooks() {
  const [url, setUrl] = useUrl();
  const { q, way, state, endpoint, event, signature, entry: chosen, of } = url;
  const filters = useMemo(
    () => readFilters({ q, way, state, endpoint, event, signature }),
    [q, way, state, endpoint, event, signature],
  );
  const log = useLog(filters);
  const endpoints = useApi("/v1/webhooks/out", undefined, { every: 15_000, keep: true });
  const hooks = useApi("/v1/webhooks/in", undefined, { every: 15_000, keep: true });
  const field = useRef<HTMLInputElement>(null);
  const detailPane = useRef<HTMLElement>(null);
  const close = () => setUrl({ entry: null, of: null });
  useKeys(
    {
      f: { says: "Search the log", run: () => field.current?.focus() },
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
      ...(chosen !== undefined && {
        d: { says: "Focus the selected one", run: () => detailPane.current?.focus() },
        Backspace: { says: "Clear selection", run: close },
      }),
    },
    "Webhooks",
  );
  const isFiltered = [q, way, state, endpoint, event, signature].some((one) => one !== undefined);
  const isUnused = endpoints.data?.items.length === 0 && hooks.data?.items.length === 0 && !isFiltered;
  return (
    <section className={classes.view} aria-label="Webhook log">
      <h1 className="unseen">Webhook log</h1>
      <div className={classes.inside} data-open={chosen !== undefined || undefined}>
        <div className={classes.main}>
          <FilterBar
            filters={filters}
            endpoints={endpoints.data?.items ?? []}
            hooks={hooks.data?.items ?? []}
            entries={log.entries}
            isFiltered={isFiltered}
            set={(changes) => setUrl(changes, true)}
            field={field}
          />
          {log.entries.length > 0 && (
            <Grid
              label="Webhook log"
              columns={COLUMNS}
              rows={log.entries}
              keyOf={keyOf}
              current={chosen}
              onOpen={(one) => setUrl({ entry: one.id, of: one.way === "out" ? one.whoId : null })}
              onEnd={log.more}
            />
          )}
          {!log.ready && !log.problem && <Loading rows={8} />}
          {!log.ready && log.problem && <ErrorNotice problem={log.problem} again={log.again} />}
          {log.ready && log.entries.length === 0 && (
            <Nothing isUnused={isUnused} isFiltered={isFiltered} clear={() => setUrl(NO_FILTER, true)} />
          )}
          {log.ready && log.came > 0 && (
            <p className={classes.foot} role="status">
              {log.problem && <span className={classes.stale}>Not up to date: {log.problem.message}</span>}
              <span>
                {filters.q
                  ? `${log.entries.length} of the ${log.came} newest`
                  : `${log.entries.length} ${log.whole ? "total" : "so far"}`}
                , newest first
              </span>
              {!log.whole && (
                <button type="button" className={classes.link} onClick={log.more}>
                  {log.loading ? "loading older…" : "load older"}
                </button>
              )}
            </p>
          )}
        </div>
        {chosen !== undefined && (
          <aside className={classes.aside} aria-label="Selected" ref={detailPane} tabIndex={-1}>
            {of ? (
              <OutboundDelivery key={chosen} delivery_id={chosen} endpoint_id={of} onClose={close} />
            ) : (
              <InboundCall key={chosen} call_id={chosen} hooks={hooks.data?.items ?? []} onClose={close} />
            )}
          </aside>
        )}
      </div>
    </section>
  );
}

function Nothing({
  isUnused,
  isFiltered,
  clear,
}: {
  isUnused: boolean;
  isFiltered: boolean;
  clear: () => void;
}) {
  if (isFiltered)
    return (
      <Empty>
        No entries match these filters.{" "}
        <button type="button" className={classes.link} onClick={clear}>
          Show all
        </button>
      </Empty>
    );
  return (
    <Empty command={`observatory webhooks add "ops desk" https://example.com/in --event gate_opened`}>
      {isUnused ? "No webhooks. " : "No deliveries or calls yet. "}
      Create endpoints and inbound webhooks in{" "}
      <Link to="/settings/$section" params={{ section: "channels" }}>
        Settings
      </Link>
      , or on the command line:
    </Empty>
  );
}
