// The approvals inbox: gates, decisions, low-confidence steps. List left, the selected one right; at phone
// width one after the other. The URL holds the item (`item`) and the kind filter (`kind`).
import { useCallback, useEffect, useRef } from "react";
import type { WaitingAnswer, WaitingItem } from "~/protocol/openapi";
import { Icon } from "~/shell/Icon";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWaiting } from "~/widgets/pendingItems";
import { Detail } from "./Detail";
import classes from "./Inbox.module.css";
import { ItemList, Kinds } from "./ItemList";
import { nameOf, neighbour, shownItem, stayingItem } from "./order";

const GONE = "No longer pending: it was answered or withdrawn, or its deadline passed.";

export function Inbox() {
  const query = useWaiting();
  return (
    <div className={classes.inbox}>
      <h1 className="unseen">Approvals inbox</h1>
      <Loaded query={query} rows={8}>
        {(answer) => <Both answer={answer} />}
      </Loaded>
    </div>
  );
}

function Both({ answer }: { answer: WaitingAnswer }) {
  const [search, setUrl] = useUrl();
  const detail = useRef<HTMLElement>(null);
  const items = shownItem(answer.items, search.kind);
  const wanted = search.item;
  // Without a selection the most urgent is shown; the URL stays as it was. The shown item stays, even when a
  // more urgent one arrives or it is no longer pending: a user must never answer one item while reading
  // another, and input must not be lost.
  const last = useRef<WaitingItem | null>(null);
  const answered = useRef<string | null>(null);
  const others = items.filter((one) => nameOf(one) !== answered.current);
  const { item, gone } = stayingItem(answer.items, others, wanted, last.current);
  last.current = item ?? null;
  const choose = useCallback((name: string | null) => setUrl({ item: name }, true), [setUrl]);
  const move = (by: 1 | -1) => {
    const to = neighbour(items, item ? nameOf(item) : undefined, by);
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
      Enter: { says: "Open the selected item: Tab, or 1–9 for an option", run: enter },
    },
    "Inbox",
  );
  useEffect(() => {
    document.querySelector(`[data-item="${CSS.escape(wanted ?? "")}"]`)?.scrollIntoView({ block: "nearest" });
  }, [wanted]);
  if (answer.items.length === 0 && !wanted && !item)
    return (
      <Empty command="observatory demo --incident gate">
        Inbox empty. Held messages, decision requests and low-confidence steps appear here, most urgent first.
        To see one:
      </Empty>
    );
  // After an answer: select the next item below, else the one above, to work down the list.
  const done = () => {
    const name = item ? nameOf(item) : undefined;
    // An item answered here leaves the list a moment later; that is no news.
    answered.current = name ?? null;
    last.current = null;
    choose(neighbour(items, name, 1) ?? neighbour(items, name, -1));
  };
  return (
    <div className={classes.both} data-open={wanted !== undefined || undefined}>
      <nav className={classes.list} aria-label="Pending items">
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
      <section className={classes.detail} ref={detail} tabIndex={-1} aria-label="Selected item">
        <button type="button" className={classes.back} onClick={() => choose(null)}>
          <Icon name="back" /> All that waits
        </button>
        {gone && (
          <p className={classes.gone} role="alert">
            {GONE} Your input is kept.
          </p>
        )}
        {item ? (
          <Detail key={nameOf(item)} item={item} done={done} />
        ) : (
          <Empty>{wanted ? GONE : "Nothing of this kind is pending."}</Empty>
        )}
      </section>
    </div>
  );
}
