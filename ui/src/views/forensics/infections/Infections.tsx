// Facts held by agents, those marked false on top; a selected fact shows its origin, time and spread. With
// nothing selected it is a searchable list.
import { CloseButton, TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { get, type Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { FactItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { useSearchText } from "~/widgets/useSearchText";
import { BoardLayout } from "../BoardLayout";
import classes from "../BoardLayout.module.css";
import { Fact } from "./Fact";
import { listed } from "./factOrder";

const PAGE = 200;

function useFacts(q: string | undefined, agent: string | undefined) {
  return useInfiniteQuery({
    queryKey: ["/v1/facts", "pages", q ?? "", agent ?? ""],
    queryFn: ({ pageParam, signal }) =>
      get("/v1/facts", { query: { q, agent, cursor: pageParam, limit: PAGE }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    // Pages already scrolled through are not all refetched every few seconds.
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) > 1 ? false : 5_000),
  });
}

export function Infections() {
  const [url, setUrl] = useUrl();
  if (url.fact)
    return (
      <Fact
        key={url.fact}
        id={url.fact}
        onClose={() => setUrl({ fact: null, weak: null, holder: null, seq: null, at: null })}
      />
    );
  return <List />;
}

const COLUMNS: Column<FactItem>[] = [
  {
    id: "text",
    title: "Fact",
    cell: (fact) => (
      <span title={inert(fact.text)}>
        {fact.marked_false && (
          <>
            <Tag tone="alert">× false</Tag>{" "}
          </>
        )}
        {inert(fact.text)}
      </span>
    ),
  },
  { id: "uses", title: "Uses", width: 56, figure: true, sorts: true, cell: (fact) => fact.uses },
  { id: "agent", title: "Source", width: 150, from: 560, cell: (fact) => fact.agent_id ?? "unknown" },
  {
    id: "session",
    title: "Session",
    width: 96,
    from: 860,
    cell: (fact) => <span className="mono">{fact.session_id?.slice(0, 8) ?? "–"}…</span>,
  },
  { id: "at", title: "When", width: 90, from: 420, sorts: true, cell: (fact) => <Ago at={fact.at} /> },
];

function List() {
  const [url, setUrl] = useUrl();
  const { q, agent, sort } = url;
  const facts = useFacts(q, agent);
  const marked = useApi("/v1/facts", { marked: true, limit: 200 }, { every: 5_000, keep: true });
  const field = useRef<HTMLInputElement>(null);
  const search = useSearchText(q ?? "", (text) => setUrl({ q: text }, true));
  const rows = useMemo(
    () =>
      listed(
        facts.data?.pages.flatMap((page) => page.items) ?? [],
        marked.data?.items ?? [],
        { q, agent },
        sort,
      ),
    [facts.data, marked.data, q, agent, sort],
  );
  const down = !sort?.startsWith("-");
  const by = sort?.replace(/^-/, "") === "uses" ? "uses" : "at";
  useKeys(
    {
      f: { says: "Search facts", run: () => field.current?.focus() },
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
    },
    "Infections",
  );
  const falses = marked.data?.items.length ?? 0;
  const error = facts.error as Problem | null;
  return (
    <BoardLayout
      label="Infections"
      lead={
        marked.data === undefined
          ? "Facts held by agents"
          : falses === 0
            ? "No fact is marked false"
            : `${plural(falses, "fact is", "facts are")} marked false`
      }
      hint="Select a fact to see its origin and how it spread."
      stale={facts.data ? error : null}
      tools={
        <search className={classes.tools} aria-label="Filter the facts" style={{ flex: 1 }}>
          <TextInput
            ref={field}
            size="xs"
            className={classes.text}
            aria-label="Search facts"
            placeholder="search facts"
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
              onClick={() => setUrl({ agent: null })}
            >
              by {agent} ×
            </button>
          )}
        </search>
      }
    >
      {rows.length > 0 && (
        <Grid
          label="Facts"
          columns={COLUMNS}
          rows={rows}
          keyOf={(fact) => fact.fact_id}
          onOpen={(fact) => setUrl({ fact: fact.fact_id })}
          sort={{ id: by, down }}
          onSort={(id) => setUrl({ sort: by === id && down ? `-${id}` : id }, true)}
          onEnd={() => facts.hasNextPage && !facts.isFetching && void facts.fetchNextPage()}
        />
      )}
      {!facts.data &&
        (error ? <ErrorNotice problem={error} again={() => void facts.refetch()} /> : <Loading rows={8} />)}
      {facts.data && rows.length === 0 && (
        <Empty command={q || agent ? undefined : "observatory demo --incident infection"}>
          {q || agent
            ? "No matching facts. Words must appear exactly."
            : "No facts yet: every text in state_delta.added_to_memory is a fact. To see one spread:"}
        </Empty>
      )}
      {facts.data && rows.length > 0 && (
        <p className={classes.foot} role="status">
          <span>
            {rows.length} {facts.hasNextPage ? "newest facts; more come as you scroll" : "facts"}
            {by === "uses" && facts.hasNextPage ? ", sorted among these" : ""}
          </span>
        </p>
      )}
    </BoardLayout>
  );
}
