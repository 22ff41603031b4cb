// Master-detail layout: a list, and next to it the selected or new item (`?one=ID`, `?one=new`); on a narrow
// screen one after the other. Arrow keys move, Enter opens, n creates, Esc returns to the list.
import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { Icon } from "~/shell/Icon";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { type Column, Grid } from "~/widgets/Grid";
import { Empty } from "~/widgets/Panel";
import classes from "./Parts.module.css";

interface Props<T> {
  label: string;
  rows: readonly T[];
  keyOf: (row: T) => string;
  nameOf: (row: T) => string;
  columns: readonly Column<T>[];
  /** Replaces an empty list. */
  empty: ReactNode;
  /** The label for a new item: "New rule". */
  makes: string;
  making: ReactNode;
  one: (row: T) => ReactNode;
  /** Above the list. */
  above?: ReactNode;
}

export function MasterDetail<T>({
  label,
  rows,
  keyOf,
  nameOf,
  columns,
  empty,
  makes,
  making,
  one,
  above,
}: Props<T>) {
  const [url, setUrl] = useUrl();
  const chosen = url.one;
  const row = rows.find((each) => keyOf(each) === chosen);
  const pane = useRef<HTMLElement>(null);
  const before = useRef(chosen);
  const close = () => setUrl({ one: null });
  useEffect(() => {
    if (before.current === chosen) return;
    before.current = chosen;
    // Opening focuses the pane; closing returns focus to the row.
    if (chosen !== undefined) pane.current?.focus();
    else document.querySelector<HTMLElement>("tr[data-reached]")?.focus();
  }, [chosen]);
  useKeys(
    {
      n: { says: makes, run: () => setUrl({ one: "new" }) },
      ...(chosen !== undefined && { Escape: { says: "Back to the list", run: close } }),
    },
    label,
  );
  return (
    <div className={classes.desk} data-open={chosen !== undefined || undefined}>
      <div className={classes.list}>
        {above}
        {rows.length === 0 ? (
          empty
        ) : (
          <Grid
            label={label}
            columns={columns}
            rows={rows}
            keyOf={keyOf}
            current={chosen}
            onOpen={(opened) => setUrl({ one: keyOf(opened) })}
          />
        )}
      </div>
      {chosen !== undefined && (
        <aside
          className={classes.pane}
          ref={pane}
          tabIndex={-1}
          aria-label={chosen === "new" ? makes : row ? nameOf(row) : "Not found"}
        >
          <header className={classes.paneHead}>
            <h2>{chosen === "new" ? makes : row ? nameOf(row) : "Not found"}</h2>
            <button type="button" className={classes.close} onClick={close} aria-label="Back to the list">
              <Icon name="close" size={16} />
            </button>
          </header>
          {chosen === "new" ? (
            making
          ) : row ? (
            <div key={chosen}>{one(row)}</div>
          ) : (
            <Empty>It was removed, or the URL has a wrong id.</Empty>
          )}
        </aside>
      )}
    </div>
  );
}

export function MakeNew({ word, denied }: { word: string; denied: string | undefined }) {
  const [, setUrl] = useUrl();
  return (
    <Button
      size="compact-sm"
      disabled={denied !== undefined}
      title={denied}
      onClick={() => setUrl({ one: "new" })}
    >
      {word}…
    </Button>
  );
}
