// A virtualised table: arrow keys move, Enter opens, Space peeks. Columns that do not fit are left out, the
// first always stays. A view provides the cells and keeps its state in the URL.
import { UnstyledButton } from "@mantine/core";
import { useElementSize, useMergedRef } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useEffect, useRef, useState } from "react";
import classes from "./Grid.module.css";

export const ROW = 28;

export interface Column<T> {
  id: string;
  title: string;
  cell: (row: T) => ReactNode;
  /** Pixels, or a share such as "30%"; without one it takes the remaining width. */
  width?: number | string;
  /** Shown from this width of the table on. */
  from?: number;
  /** A number: right-aligned. */
  figure?: boolean;
  sorts?: boolean;
}

export interface Sorted {
  id: string;
  down: boolean;
}

interface Props<T> {
  label: string;
  /** Must keep their identity (`useMemo`): rows re-render when it changes. */
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** The key of the row that is open or peeked at. */
  current?: string | undefined;
  onOpen?: ((row: T) => void) | undefined;
  /** Space; without it Space opens too. */
  onPeek?: ((row: T) => void) | undefined;
  sort?: Sorted | undefined;
  onSort?: ((id: string) => void) | undefined;
  /** The last rows are visible: fetch more. */
  onEnd?: (() => void) | undefined;
  /** The visible rows, for callers that hold only a part of them. */
  onSeen?: ((first: number, last: number) => void) | undefined;
  /** The total number of rows, if more exist than were fetched. */
  total?: number | undefined;
}

export function Grid<T>(props: Props<T>) {
  const { label, columns, rows, keyOf, current, onOpen, onPeek, sort, onSort, onEnd, onSeen, total } = props;
  const box = useRef<HTMLDivElement>(null);
  const { ref, width } = useElementSize<HTMLDivElement>();
  const [reached, setReached] = useState(0);
  const at = Math.min(reached, Math.max(0, rows.length - 1));
  const walking = useRef(false);
  const latest = useRef(props);
  latest.current = props;
  const shown = columns.filter((one, n) => n === 0 || width === 0 || (one.from ?? 0) <= width);
  const drawn = useRef(shown);
  // The same columns are the same array, so that an unchanged row does not re-render.
  if (drawn.current.length !== shown.length || shown.some((one, n) => drawn.current[n] !== one))
    drawn.current = shown;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollPaddingStart: ROW,
  });
  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const last = items.at(-1)?.index ?? -1;
  const sight = virtual.range;

  // biome-ignore lint/correctness/useExhaustiveDependencies: requested once for each length and visible end
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 20) onEnd?.();
  }, [last, rows.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: reported once for each visible range
  useEffect(() => {
    if (sight && rows.length > 0) onSeen?.(sight.startIndex, sight.endIndex);
  }, [sight?.startIndex, sight?.endIndex, rows, rows.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the row to focus may appear only with the next items
  useEffect(() => {
    if (!walking.current) return;
    const row = box.current?.querySelector<HTMLElement>(`tr[data-index="${at}"]`);
    if (!row) return;
    walking.current = false;
    row.focus();
  }, [at, items]);

  const walk = (event: React.KeyboardEvent) => {
    if (!(event.target instanceof HTMLTableRowElement)) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? ROW) / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -rows.length,
      End: rows.length,
    };
    const by = steps[event.key];
    const row = rows[at];
    if (event.key === "Enter" && row) onOpen?.(row);
    else if (event.key === " " && row) (onPeek ?? onOpen)?.(row);
    else if (by !== undefined) {
      const next = Math.min(rows.length - 1, Math.max(0, at + by));
      walking.current = true;
      setReached(next);
      virtual.scrollToIndex(next);
    } else return;
    event.preventDefault();
  };
  const [open] = useState(() => (index: number) => {
    const { rows: now, onPeek: peeks, onOpen: opens } = latest.current;
    const row = now[index];
    if (row) (peeks ?? opens)?.(row);
  });

  return (
    <div className={classes.box} ref={useMergedRef(box, ref)}>
      <table
        className={classes.table}
        aria-label={label}
        aria-rowcount={(total ?? rows.length) + 1}
        onKeyDown={walk}
      >
        <thead>
          <tr aria-rowindex={1}>
            {drawn.current.map(({ id, title, width: wide, figure, sorts }) => (
              <th
                key={id}
                scope="col"
                className={classes.head}
                style={{ width: wide }}
                data-figure={figure || undefined}
                aria-sort={
                  sorts ? (sort?.id === id ? (sort.down ? "descending" : "ascending") : "none") : undefined
                }
              >
                {sorts ? (
                  <UnstyledButton className={classes.sort} onClick={() => onSort?.(id)}>
                    {title}
                    <span aria-hidden>{sort?.id === id ? (sort.down ? " ↓" : " ↑") : ""}</span>
                  </UnstyledButton>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {items.map(({ index }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const key = keyOf(row);
            return (
              <Line
                key={key}
                name={key}
                row={row}
                columns={drawn.current as readonly Column<unknown>[]}
                index={index}
                reached={index === at}
                isCurrent={current === key}
                opens={onOpen !== undefined || onPeek !== undefined}
                onReach={setReached}
                onOpen={open}
              />
            );
          })}
          {after > 0 && <tr aria-hidden style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  );
}

interface LineProps {
  name: string;
  row: unknown;
  columns: readonly Column<unknown>[];
  index: number;
  reached: boolean;
  isCurrent: boolean;
  opens: boolean;
  onReach: (index: number) => void;
  onOpen: (index: number) => void;
}

/** Re-rendered only when its row, columns or position changed: scrolling through thousands touches dozens. */
const Line = memo(function Line({
  name,
  row,
  columns,
  index,
  reached,
  isCurrent,
  opens,
  onReach,
  onOpen,
}: LineProps) {
  const [first, ...others] = columns;
  return (
    <tr
      className={classes.row}
      data-index={index}
      data-key={name}
      data-reached={reached || undefined}
      data-opens={opens || undefined}
      aria-rowindex={index + 2}
      aria-current={isCurrent || undefined}
      tabIndex={reached ? 0 : -1}
      onFocus={(event) => event.target === event.currentTarget && onReach(index)}
      onClick={(event) => !(event.target as Element).closest("a, button, input, label") && onOpen(index)}
    >
      {first && <th scope="row">{first.cell(row)}</th>}
      {others.map(({ id, figure, cell }) => (
        <td key={id} data-figure={figure || undefined}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
});
