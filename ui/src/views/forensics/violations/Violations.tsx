// Messages that broke the schema: counts over time, then by agent, version and reason, and the newest live.
// Only the hash of a refused message is kept, so there is no payload to show.
import { CloseButton, SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useMemo, useRef } from "react";
import { useApi } from "~/api/queries";
import { useEvents } from "~/live/useLive";
import { plural } from "~/plural";
import type { ViolationGroup } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { useSearchText } from "~/widgets/useSearchText";
import { BoardLayout } from "../BoardLayout";
import classes from "../BoardLayout.module.css";
import { Newest } from "./Newest";
import { Strip } from "./Strip";
import { keyOf, SPANS, type Span, sinceOf, spanOf } from "./spans";

export function Violations() {
  const [url, setUrl] = useUrl();
  const span = spanOf(url.span);
  const since = sinceOf(span, useNow());
  const { agent, version, q } = url;
  const query = useApi(
    "/v1/violations",
    { since, agent, version, reason: q, limit: 200 },
    { every: 5_000, keep: true },
  );
  const again = useDebouncedCallback(() => void query.refetch({ cancelRefetch: false }), 400);
  useEvents("gateway:violations", again);
  const field = useRef<HTMLInputElement>(null);
  const search = useSearchText(q ?? "", (text) => setUrl({ q: text }, true));
  useKeys(
    {
      f: { says: "Search reasons", run: () => field.current?.focus() },
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
    },
    "Violations",
  );
  const columns = useMemo(
    () =>
      columnsFor((agent_id, capability_version) => setUrl({ agent: agent_id, version: capability_version })),
    [setUrl],
  );
  const { data, error } = query;
  const filtered = Boolean(agent || version || q);
  return (
    <BoardLayout
      label="Schema violations"
      lead={
        data === undefined
          ? "Schema violations"
          : data.total === 0
            ? `No schema violations in ${SPANS[span].words}`
            : `${plural(data.total, "schema violation")} in ${SPANS[span].words}`
      }
      hint="Refused at ingest. Only a hash of each is kept, never its content."
      stale={data ? error : null}
      tools={
        <search className={classes.tools} style={{ flex: 1 }} aria-label="Filter the violations">
          <SegmentedControl
            size="xs"
            aria-label="Time range"
            data={Object.keys(SPANS)}
            value={span}
            onChange={(next) => setUrl({ span: next === "1h" ? null : (next as Span) })}
          />
          <TextInput
            ref={field}
            size="xs"
            className={classes.text}
            aria-label="Search the reason"
            placeholder="reason, e.g. cognition.intent"
            value={search.text}
            onChange={(event) => search.type(event.currentTarget.value)}
            rightSection={
              search.text && (
                <CloseButton
                  size="xs"
                  aria-label="Clear search"
                  onClick={() => {
                    search.clear();
                    setUrl({ q: null }, true);
                  }}
                />
              )
            }
          />
          {agent && (
            <button
              type="button"
              className={classes.chip}
              aria-pressed
              onClick={() => setUrl({ agent: null, version: null })}
            >
              {agent} ×
            </button>
          )}
          {version && (
            <button
              type="button"
              className={classes.chip}
              aria-pressed
              onClick={() => setUrl({ version: null })}
            >
              {version === "none" ? "no version" : version} ×
            </button>
          )}
        </search>
      }
    >
      {!data &&
        (error ? <ErrorNotice problem={error} again={() => void query.refetch()} /> : <Loading rows={8} />)}
      {data && data.total === 0 && (
        <Empty command={filtered ? undefined : "observatory demo --incident violation"}>
          {filtered
            ? "No violations match these filters in this time range."
            : "Every message matched the contract of its version. To see one that does not:"}
        </Empty>
      )}
      {data && data.total > 0 && (
        <>
          <Strip counts={data.counts} since={data.since} bucket_s={data.bucket_s} />
          <div className={classes.split}>
            <div className={classes.main}>
              <Grid
                label="Violations by agent, version and reason"
                columns={columns}
                rows={data.groups}
                keyOf={keyOf}
                total={data.groups_count}
                onOpen={(one) => one.agent_id && setUrl({ peek: `agent:${one.agent_id}` })}
              />
              <p className={classes.foot} role="status">
                <span>{plural(data.groups_count, "kind")} of fault</span>
                {data.truncated && <span>Too many to analyse; choose a shorter time range.</span>}
              </p>
            </div>
            <aside className={classes.aside} aria-label="Newest violations">
              <Panel title="Live">
                <Newest items={data.newest.slice(0, 50)} />
              </Panel>
            </aside>
          </div>
        </>
      )}
    </BoardLayout>
  );
}

function columnsFor(only: (agent: string | null, version: string) => void): Column<ViolationGroup>[] {
  return [
    {
      id: "reason",
      title: "Reason",
      cell: (one) => <span title={inert(one.reason)}>{inert(one.reason)}</span>,
    },
    {
      id: "agent",
      title: "Agent",
      width: 170,
      from: 420,
      cell: (one) =>
        one.agent_id ? (
          <Link to="/registry/$agentId" params={{ agentId: one.agent_id }}>
            {one.agent_id}
          </Link>
        ) : (
          "could not be parsed"
        ),
    },
    {
      id: "version",
      title: "Version",
      width: 110,
      from: 560,
      cell: (one) =>
        one.agent_type ? (
          <Link
            to="/registry"
            search={{ type: one.agent_type } as never}
            title={`Accepted versions of ${one.agent_type}`}
          >
            {one.capability_version ?? "no version"}
          </Link>
        ) : (
          (one.capability_version ?? "no version")
        ),
    },
    { id: "count", title: "Count", width: 60, figure: true, cell: (one) => one.count.toLocaleString("en") },
    {
      id: "when",
      title: "Over time",
      width: 130,
      from: 700,
      cell: (one) => <Spark counts={one.counts} />,
    },
    { id: "last", title: "Last", width: 84, from: 480, cell: (one) => <Ago at={one.last_at} /> },
    {
      id: "only",
      title: "",
      width: 48,
      from: 640,
      cell: (one) => (
        <button
          type="button"
          className={classes.link}
          aria-label={`Only ${one.agent_id ?? "unreadable ones"}, ${one.capability_version ?? "no version"}`}
          onClick={() => only(one.agent_id, one.capability_version ?? "none")}
        >
          only
        </button>
      ),
    },
  ];
}

function Spark({ counts }: { counts: readonly number[] }) {
  const most = Math.max(...counts, 1);
  return (
    <svg width="114" height="16" aria-hidden>
      {counts.map((count, n) =>
        count > 0 ? (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a part of the time is its place
            key={n}
            x={n * 1.9}
            width={1.5}
            y={16 - Math.max(2, (count / most) * 16)}
            height={Math.max(2, (count / most) * 16)}
            fill="var(--violation)"
          />
        ) : null,
      )}
    </svg>
  );
}
