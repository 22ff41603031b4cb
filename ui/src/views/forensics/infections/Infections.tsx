// What agents hold to be true, those marked false on top; a chosen fact opens: who started it, when, whom it
// reached. With nothing chosen it is a list to search.
import { CloseButton, TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { get, type Problem } from "~/api/client";
import { useAnswer } from "~/api/questions";
import type { FactItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import { useSearchText } from "~/widgets/useSearchText";
import { Deck } from "../Deck";
import classes from "../Deck.module.css";
import { Fact } from "./Fact";
import { listed } from "./listed";

const PAGE = 200;

function useFacts(q: string | undefined, agent: string | undefined) {
  return useInfiniteQuery({
    queryKey: ["/v1/facts", "pages", q ?? "", agent ?? ""],
    queryFn: ({ pageParam, signal }) =>
      get("/v1/facts", { query: { q, agent, cursor: pageParam, limit: PAGE }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    // Pages that were scrolled through are not all asked again every few seconds.
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
  { id: "agent", title: "Said by", width: 150, from: 560, cell: (fact) => fact.agent_id ?? "not known" },
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
  const marked = useAnswer("/v1/facts", { marked: true, limit: 200 }, { every: 5_000, keep: true });
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
        says: "To the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
    },
    "Infections",
  );
  const falses = marked.data?.items.length ?? 0;
  const error = facts.error as Problem | null;
  return (
    <Deck
      label="Infections"
      lead={
        marked.data === undefined
          ? "What agents hold to be true"
          : falses === 0
            ? "No fact is marked false"
            : `${falses} ${falses === 1 ? "fact is" : "facts are"} marked false`
      }
      beside="Choose a fact to see who started it, when, and whom it reached."
      stale={facts.data ? error : null}
      tools={
        <search className={classes.tools} aria-label="Filter the facts" style={{ flex: 1 }}>
          <TextInput
            ref={field}
            size="xs"
            className={classes.text}
            aria-label="Search words that stand in a fact"
            placeholder="words that stand in it"
            value={search.text}
            onChange={(event) => search.type(event.currentTarget.value)}
            rightSection={
              search.text && (
                <CloseButton
                  size="xs"
                  aria-label="clear the search"
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
              said by {agent} ×
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
        (error ? <Trouble problem={error} again={() => void facts.refetch()} /> : <Loading rows={8} />)}
      {facts.data && rows.length === 0 && (
        <Empty command={q || agent ? undefined : "observatory demo --incident infection"}>
          {q || agent
            ? "No fact fits. Words must stand in it as they are."
            : "No agent has added anything to its memory yet: every text in state_delta.added_to_memory is a fact. To see one spread:"}
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
    </Deck>
  );
}
