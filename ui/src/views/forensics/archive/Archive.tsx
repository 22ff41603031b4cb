// The message archive: everything that passed the gateway, searched by one query. Query, presentation and
// peek are in the URL; without a query it lists the newest, endlessly.
import { SegmentedControl } from "@mantine/core";
import { useRef } from "react";
import { plural } from "~/plural";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { AgentHits } from "./AgentHits";
import classes from "./Archive.module.css";
import { Facets } from "./Facets";
import { Hits } from "./Hits";
import type { Mode } from "./queryText";
import { SearchBar } from "./SearchBar";
import { Timeline } from "./Timeline";
import { useHits } from "./useHits";
import { useKnown } from "./useKnown";

const SHOWS = ["list", "timeline", "agents"] as const;
export type Show = (typeof SHOWS)[number];

export function Archive() {
  const [url, setUrl] = useUrl();
  const q = url.q ?? "";
  const mode: Mode = url.mode === "text" || url.mode === "semantic" ? url.mode : "hybrid";
  const show: Show = SHOWS.find((one) => one === url.show) ?? "list";
  const hits = useHits(q, mode, url.peek !== undefined);
  const { answer, error } = hits;
  const known = useKnown(answer?.facets ?? null);
  const field = useRef<HTMLInputElement>(null);
  const ask = (next: string, replace = false) => setUrl({ q: next || null }, replace);
  const turn = (to: Show) => setUrl({ show: to === "list" ? null : to }, true);
  useKeys(
    {
      f: { says: "Focus the search field", run: () => field.current?.focus() },
      t: {
        says: "Focus the results",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
      l: { says: "Results as a list", run: () => turn("list") },
      h: { says: "Results over time (histogram)", run: () => turn("timeline") },
      g: { says: "Results by agent (grouped)", run: () => turn("agents") },
    },
    "Archive",
  );
  const isNothing = answer !== undefined && answer.hits === 0;
  const isVirgin = isNothing && q.trim() === "";
  return (
    <section className={classes.view} aria-label="Message archive">
      <h1 className="unseen">Message archive</h1>
      <SearchBar
        q={q}
        mode={mode}
        answer={hits.isOld ? undefined : answer}
        known={known}
        field={field}
        onAsk={ask}
        onMode={(next) => setUrl({ mode: next === "hybrid" ? null : next }, true)}
      />
      <div className={classes.body}>
        <Facets facets={answer?.facets ?? null} q={q} onAsk={ask} capped={answer?.capped ?? false} />
        <div className={classes.results} aria-busy={hits.isOld}>
          <div className={classes.head}>
            <SegmentedControl
              size="xs"
              aria-label="Show results as"
              value={show}
              onChange={(next) => turn(next as Show)}
              data={[
                { value: "list", label: "List" },
                { value: "timeline", label: "Timeline" },
                { value: "agents", label: "Agents" },
              ]}
            />
            <p className={classes.count} role="status">
              {hits.isOld && "searching… showing previous results"}
              {answer && !hits.isOld && !isVirgin && counted(answer.hits, answer.capped, q)}
              {answer &&
                !hits.isOld &&
                answer.behind > 0 &&
                ` · index lag: ${plural(answer.behind, "event")}`}
              {error && answer && <span className={classes.stale}>Not up to date: {error.message}</span>}
            </p>
            {hits.newer > 0 && show !== "agents" && (
              <button type="button" className={classes.newer} onClick={hits.takeNewer}>
                ↑ {hits.newer >= 100 ? "100 or more" : hits.newer} newer, show
              </button>
            )}
          </div>
          {!answer && error && <ErrorNotice problem={error} again={hits.refetch} />}
          {!answer && !error && <Loading rows={10} />}
          {isVirgin && (
            <Empty command="observatory demo">
              No messages archived yet. Every message that passes the gateway appears here a moment later; to
              start a demo mesh:
            </Empty>
          )}
          {isNothing && !isVirgin && (
            <Empty>
              No matches.{" "}
              {mode !== "hybrid"
                ? "Searching by words and meaning finds more."
                : "Fewer words find more; ~ before a word searches by meaning."}{" "}
              <button type="button" className={classes.link} onClick={() => ask("")}>
                Show the newest
              </button>
            </Empty>
          )}
          {answer && !isNothing && show === "timeline" && <Timeline q={q} mode={mode} onAsk={ask} />}
          {answer && !isNothing && show !== "agents" && hits.pages && (
            <Hits key={hits.turn} pages={hits.pages} onTop={hits.onTop} isRanked={hits.isRanked} />
          )}
          {answer && !isNothing && show === "agents" && <AgentHits q={q} mode={mode} onAsk={ask} />}
        </div>
      </div>
    </section>
  );
}

function counted(hits: number, capped: boolean, q: string): string {
  const many = hits.toLocaleString("en");
  if (capped) return q.trim() === "" ? "newest first, scroll for more" : `more than ${many} hits`;
  return plural(hits, "hit");
}
