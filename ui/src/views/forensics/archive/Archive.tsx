// The message archive: everything that passed the gateway, asked in one line. The question, how it is shown and
// what is peeked at are in the URL; without a question it is the newest, without an end.
import { SegmentedControl } from "@mantine/core";
import { useRef } from "react";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import classes from "./Archive.module.css";
import { Facets } from "./Facets";
import { Hits } from "./Hits";
import type { Mode } from "./reading";
import { SearchBar } from "./SearchBar";
import { Speakers } from "./Speakers";
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
      f: { says: "To the search field", run: () => field.current?.focus() },
      t: {
        says: "To the results",
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
              {hits.isOld && "searching… these answer the question before"}
              {answer && !hits.isOld && !isVirgin && counted(answer.hits, answer.capped, q)}
              {answer &&
                !hits.isOld &&
                answer.behind > 0 &&
                ` · the index is ${answer.behind.toLocaleString("en")} behind`}
              {error && answer && <span className={classes.stale}>Not up to date: {error.message}</span>}
            </p>
            {hits.newer > 0 && show !== "agents" && (
              <button type="button" className={classes.newer} onClick={hits.takeNewer}>
                ↑ {hits.newer >= 100 ? "100 or more" : hits.newer} newer, show
              </button>
            )}
          </div>
          {!answer && error && <Trouble problem={error} again={hits.refetch} />}
          {!answer && !error && <Loading rows={10} />}
          {isVirgin && (
            <Empty command="observatory demo">
              Nothing was archived yet. Every message that passes the gateway is found here a moment later; to
              see a mesh at work:
            </Empty>
          )}
          {isNothing && !isVirgin && (
            <Empty>
              Nothing in the archive fits.{" "}
              {mode !== "hybrid"
                ? "Words and meaning together find more."
                : "Fewer words find more; ~ before a word looks for what means the same."}{" "}
              <button type="button" className={classes.link} onClick={() => ask("")}>
                Show the newest
              </button>
            </Empty>
          )}
          {answer && !isNothing && show === "timeline" && <Timeline q={q} mode={mode} onAsk={ask} />}
          {answer && !isNothing && show !== "agents" && hits.pages && (
            <Hits key={hits.turn} pages={hits.pages} onTop={hits.onTop} isRanked={hits.isRanked} />
          )}
          {answer && !isNothing && show === "agents" && <Speakers q={q} mode={mode} onAsk={ask} />}
        </div>
      </div>
    </section>
  );
}

function counted(hits: number, capped: boolean, q: string): string {
  const many = hits.toLocaleString("en");
  if (capped) return q.trim() === "" ? "newest first, as far as you scroll" : `more than ${many} hits`;
  return `${many} ${hits === 1 ? "hit" : "hits"}`;
}
