// Registry & Capability Discovery (view 3): agent types and capabilities, and next to them the selected one:
// traffic split, circuit, versions and models; with nothing selected the whole mesh. The URL holds it all.
import { useMemo, useRef } from "react";
import { plural } from "~/plural";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { Detail } from "./detail/Detail";
import { Overview } from "./detail/Overview";
import { FilterBar, NO_FILTER } from "./FilterBar";
import classes from "./Registry.module.css";
import { isFiltered, pick, readFilters } from "./registryRows";
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
  const detailPane = useRef<HTMLElement>(null);
  useKeys(
    {
      f: { says: "Search types and agents", run: () => field.current?.focus() },
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
      ...(type !== undefined && {
        d: {
          says: "Focus weights, circuit and versions of the selected type",
          run: () => detailPane.current?.focus(),
        },
        Backspace: { says: "Clear selection", run: () => setUrl({ type: null }) },
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
          {!data && registry.error && <ErrorNotice problem={registry.error} again={registry.refetch} />}
          {!data && !registry.error && <Loading rows={8} />}
          {data?.groups.length === 0 && (
            <Empty command="observatory demo">
              No agents yet. An agent is listed with its first message, heartbeat or POST /v1/agents; to start
              a demo mesh:
            </Empty>
          )}
          {data && data.groups.length > 0 && (
            <p className={classes.foot} role="status">
              {registry.error && (
                <span className={classes.stale}>Not up to date: {registry.error.message}</span>
              )}
              {picked.groups === 0 ? (
                <span>No matches among {plural(data.agents.length, "agent")}.</span>
              ) : (
                <span>
                  {plural(picked.groups, "entry", "entries")}, {plural(picked.agents, "agent")}
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
                    detailPane.current?.scrollIntoView({ block: "start" });
                    detailPane.current?.focus();
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
          aria-label={type === undefined ? "Whole mesh" : `Details of ${type}`}
          ref={detailPane}
          tabIndex={-1}
        >
          {type === undefined ? (
            data && data.groups.length > 0 && <Overview groups={data.groups} agents={data.agents} />
          ) : chosen ? (
            <Detail key={chosen.name} group={chosen} onClose={() => setUrl({ type: null })} />
          ) : (
            data && (
              <Empty>
                There is no agent type or capability “{type}”.{" "}
                <button type="button" className={classes.link} onClick={() => setUrl({ type: null })}>
                  Clear selection
                </button>
              </Empty>
            )
          )}
        </aside>
      </div>
    </section>
  );
}
