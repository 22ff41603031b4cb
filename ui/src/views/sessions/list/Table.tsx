// The virtualised table of sessions. On a narrow screen the same rows are cards.
// biome-ignore-all lint/a11y/useSemanticElements: a virtualiser places the rows, which a <tr> does not allow
// biome-ignore-all lint/a11y/useFocusableInteractive: the actions of a cell are buttons or links
import { useElementSize } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";
import { type Filters, pressedSort, type SortKey } from "./filters";
import { Row, type RowActs } from "./Row";
import type { SessionRow } from "./session";
import classes from "./Table.module.css";

const [ROW, CARD, NARROW] = [28, 120, 700];
const HEADS: { key: SortKey; name: string; className: string | undefined }[] = [
  { key: "status", name: "Status", className: classes.status },
  { key: "goal", name: "Goal", className: classes.goal },
  { key: "agents", name: "Agents", className: classes.agents },
  { key: "steps", name: "Steps", className: classes.steps },
  { key: "entropy", name: "Entropy", className: classes.entropy },
  { key: "confidence", name: "Confidence", className: classes.confidence },
  { key: "cost", name: "Cost / cap", className: classes.cost },
  { key: "age", name: "Age", className: classes.age },
];

interface TableProps extends RowActs {
  rows: readonly SessionRow[];
  filters: Filters;
  cursor: string | null;
  chosen: readonly string[];
  onSort: (sort: string) => void;
  foot: ReactNode;
}

export function Table({ rows, filters, cursor, chosen, onSort, foot, ...acts }: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const { ref, width } = useElementSize();
  const height = width > 0 && width < NARROW ? CARD : ROW;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
    getItemKey: (index) => rows[index]?.session_id ?? index,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured again when the height of a row changes
  useEffect(() => virtual.measure(), [height]);
  const at = cursor === null ? -1 : rows.findIndex((row) => row.session_id === cursor);
  // Scrolls to the cursor when it was moved, not when rows moved under it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the cursor counts
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [cursor]);
  return (
    <div className={classes.table} ref={ref}>
      <div role="table" aria-label="Sessions" aria-rowcount={rows.length + 1} className={classes.grid}>
        <div role="rowgroup" className={classes.heads}>
          <div role="row" aria-rowindex={1} className={classes.head}>
            <div role="columnheader" className={classes.choose}>
              <span className="unseen">Select</span>
            </div>
            {HEADS.map(({ key, name, className }) => (
              <div
                key={key}
                role="columnheader"
                className={className}
                aria-sort={filters.sort === key ? (filters.down ? "descending" : "ascending") : "none"}
              >
                <button type="button" onClick={() => onSort(pressedSort(filters, key))}>
                  {name}
                  <span aria-hidden>{filters.sort === key ? (filters.down ? " ↓" : " ↑") : ""}</span>
                </button>
              </div>
            ))}
          </div>
        </div>
        <div ref={box} className={classes.scroll} role="rowgroup">
          <div className={classes.all} style={{ height: virtual.getTotalSize() }} role="presentation">
            {virtual.getVirtualItems().map((item) => {
              const row = rows[item.index];
              return (
                row && (
                  <Row
                    key={row.session_id}
                    row={row}
                    index={item.index}
                    offset={item.start}
                    height={item.size}
                    atCursor={cursor === row.session_id}
                    tabbed={cursor === row.session_id || (at === -1 && item.index === 0)}
                    chosen={chosen.includes(row.session_id)}
                    {...acts}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
      <div className={classes.foot}>{foot}</div>
    </div>
  );
}
