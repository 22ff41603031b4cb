// Everything that waits for a person: gates, decisions, steps an agent was not sure of. List left, the one
// chosen right; at phone width one after the other. The URL holds which (`item`) and of what kind (`kind`).
import { useCallback, useEffect, useRef } from "react";
import type { WaitingAnswer, WaitingItem } from "~/protocol/openapi";
import { Icon } from "~/shell/Icon";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Shown } from "~/widgets/Panel";
import { useWaiting } from "~/widgets/waiting";
import { Detail } from "./Detail";
import classes from "./Inbox.module.css";
import { ItemList, Kinds } from "./ItemList";
import { beside, nameOf, shownOf, stays } from "./order";

const GONE = "This one no longer waits: somebody answered it, it was withdrawn, or its deadline passed.";

export function Inbox() {
  const asked = useWaiting();
  return (
    <div className={classes.inbox}>
      <h1 className="unseen">Approvals inbox</h1>
      <Shown asked={asked} rows={8}>
        {(answer) => <Both answer={answer} />}
      </Shown>
    </div>
  );
}

function Both({ answer }: { answer: WaitingAnswer }) {
  const [search, setUrl] = useUrl();
  const detail = useRef<HTMLElement>(null);
  const items = shownOf(answer.items, search.kind);
  const wanted = search.item;
  // Without a choice the most urgent is shown beside the list; the URL stays as it was. Whichever is shown
  // stays shown, whatever more urgent comes and even when it no longer waits: nobody answers one while
  // reading another, and what was typed is not taken away.
  const last = useRef<WaitingItem | null>(null);
  const answered = useRef<string | null>(null);
  const others = items.filter((one) => nameOf(one) !== answered.current);
  const { item, gone } = stays(answer.items, others, wanted, last.current);
  last.current = item ?? null;
  const choose = useCallback((name: string | null) => setUrl({ item: name }, true), [setUrl]);
  const move = (by: 1 | -1) => {
    const to = beside(items, item ? nameOf(item) : undefined, by);
    if (to) choose(to);
  };
  const enter = () => {
    if (item && !wanted) choose(nameOf(item));
    const pane = detail.current?.querySelector<HTMLElement>("[data-pane]") ?? detail.current;
    pane?.focus();
  };
  useKeys(
    {
      j: { says: "Next", run: () => move(1) },
      k: { says: "Previous", run: () => move(-1) },
      ArrowDown: { says: "Next", run: () => move(1) },
      ArrowUp: { says: "Previous", run: () => move(-1) },
      Enter: { says: "Into the chosen one: Tab, or 1–9 for an option", run: enter },
    },
    "Inbox",
  );
  useEffect(() => {
    document.querySelector(`[data-item="${CSS.escape(wanted ?? "")}"]`)?.scrollIntoView({ block: "nearest" });
  }, [wanted]);
  if (answer.items.length === 0 && !wanted && !item)
    return (
      <Empty command="observatory demo --incident gate">
        Nothing waits for you. Messages at a gate, questions of agents and steps they were not sure of will
        stand here, the most urgent first. To see one:
      </Empty>
    );
  // After an answer: what stood below it, else above it, so that one works down the list.
  const done = () => {
    const name = item ? nameOf(item) : undefined;
    // What was answered here leaves the list a moment later; that is no news.
    answered.current = name ?? null;
    last.current = null;
    choose(beside(items, name, 1) ?? beside(items, name, -1));
  };
  return (
    <div className={classes.both} data-open={wanted !== undefined || undefined}>
      <nav className={classes.list} aria-label="Waiting for you">
        <Kinds
          counts={answer.counts}
          kind={search.kind}
          choose={(kind) => {
            last.current = null;
            setUrl({ kind, item: null }, true);
          }}
        />
        <ItemList items={items} chosen={item ? nameOf(item) : undefined} />
      </nav>
      <section className={classes.detail} ref={detail} tabIndex={-1} aria-label="What is asked">
        <button type="button" className={classes.back} onClick={() => choose(null)}>
          <Icon name="back" /> All that waits
        </button>
        {gone && (
          <p className={classes.gone} role="alert">
            {GONE} What you typed is still here.
          </p>
        )}
        {item ? (
          <Detail key={nameOf(item)} item={item} done={done} />
        ) : (
          <Empty>{wanted ? GONE : "Nothing of this kind waits."}</Empty>
        )}
      </section>
    </div>
  );
}
