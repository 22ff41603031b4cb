// Registry & Capability Discovery (view 3): the Yellow Pages, and beside them what is chosen: how work is shared
// out, its circuit, its versions and models; with nothing chosen the whole mesh. The URL holds it all.
import { useMemo, useRef } from "react";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import { Detail } from "./detail/Detail";
import { Overview } from "./detail/Overview";
import { FilterBar, NO_FILTER } from "./FilterBar";
import { isFiltered, pick, readFilters } from "./pages";
import classes from "./Registry.module.css";
import { Table } from "./Table";
import { useRegistry } from "./useRegistry";

export function Registry() {
  const [url, setUrl] = useUrl();
  const { q, kind, live, circuit, sort, type } = url;
  const filters = useMemo(
    () => readFilters({ q, kind, live, circuit, sort }),
    [q, kind, live, circuit, sort],
  );
  const registry = useRegistry();
  const { data } = registry;
  const picked = useMemo(() => pick(data?.groups ?? [], filters, type), [data, filters, type]);
  const chosen = type === undefined ? undefined : data?.groups.find((group) => group.name === type);
  const field = useRef<HTMLInputElement>(null);
  const beside = useRef<HTMLElement>(null);
  useKeys(
    {
      f: { says: "Search types and agents", run: () => field.current?.focus() },
      t: {
        says: "To the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
      ...(type !== undefined && {
        d: {
          says: "To weights, circuit and versions of the chosen type",
          run: () => beside.current?.focus(),
        },
        Backspace: { says: "Let go of the chosen type", run: () => setUrl({ type: null }) },
      }),
    },
    "Registry",
  );

  return (
    <section className={classes.view} aria-label="Registry and Capability Discovery">
      <h1 className="unseen">Registry and Capability Discovery</h1>
      <div className={classes.inside}>
        <div className={classes.main}>
          <FilterBar
            filters={filters}
            counts={picked.counts}
            set={(changes) => setUrl(changes, true)}
            field={field}
          />
          {data && data.groups.length > 0 && (
            <Table
              picked={picked}
              filters={filters}
              chosen={type}
              peek={url.peek}
              onSort={(next) => setUrl({ sort: next }, true)}
              onChoose={(name) => {
                setUrl({ type: name === type ? null : name });
              }}
            />
          )}
          {!data && registry.error && <Trouble problem={registry.error} again={registry.refetch} />}
          {!data && !registry.error && <Loading rows={8} />}
          {data?.groups.length === 0 && (
            <Empty command="observatory demo">
              No agent is known yet. One is listed with its first message, heartbeat or POST /v1/agents; to
              see a whole mesh:
            </Empty>
          )}
          {data && data.groups.length > 0 && (
            <p className={classes.foot} role="status">
              {registry.error && (
                <span className={classes.stale}>Not up to date: {registry.error.message}</span>
              )}
              {picked.groups === 0 ? (
                <span>Nothing fits. {data.agents.length} agents are there.</span>
              ) : (
                <span>
                  {picked.groups} {picked.groups === 1 ? "entry" : "entries"}, {picked.agents}{" "}
                  {picked.agents === 1 ? "agent" : "agents"}
                </span>
              )}
              {isFiltered(filters) && (
                <button type="button" className={classes.link} onClick={() => setUrl(NO_FILTER, true)}>
                  show all
                </button>
              )}
              {chosen && (
                <button
                  type="button"
                  className={classes.down}
                  onClick={() => {
                    beside.current?.scrollIntoView({ block: "start" });
                    beside.current?.focus();
                  }}
                >
                  Weights, circuit and versions of {chosen.name} ↓
                </button>
              )}
            </p>
          )}
        </div>
        <aside
          className={classes.aside}
          aria-label={type === undefined ? "The whole mesh" : `About ${type}`}
          ref={beside}
          tabIndex={-1}
        >
          {type === undefined ? (
            data && data.groups.length > 0 && <Overview groups={data.groups} agents={data.agents} />
          ) : chosen ? (
            <Detail key={chosen.name} group={chosen} onClose={() => setUrl({ type: null })} />
          ) : (
            data && (
              <Empty>
                No agent type or capability is named “{type}” here.{" "}
                <button type="button" className={classes.link} onClick={() => setUrl({ type: null })}>
                  Show the whole mesh
                </button>
              </Empty>
            )
          )}
        </aside>
      </div>
    </section>
  );
}
