// The agent list, equivalent to the map: the same agents, find and hide, drill-down and actions. A
// virtualised table; arrow keys move, Enter opens, sorting is in the URL.
import { UnstyledButton } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import { matches, type NodeRecord, parseFind } from "~/graph";
import { plural } from "~/plural";
import { usePeekList } from "~/shell/peek";
import { useUrl } from "~/useUrl";
import { Empty } from "~/widgets/Panel";
import classes from "./FleetList.module.css";
import { FleetRow } from "./FleetRow";
import { COLUMNS, ordered, type Row, rowOf } from "./rows";
import { type FleetViewState, orderText, turned } from "./viewState";

const ROW = 28;
/** Rows the side panel's J and K can reach. */
const LISTED = 300;

interface Props {
  looking: FleetViewState;
  nodes: readonly NodeRecord[];
  peek: string | undefined;
}

function useRows(looking: FleetViewState, nodes: readonly NodeRecord[]): Row[] {
  // Above 300 agents the live feed leaves out cost and failures: they are fetched separately.
  const compact = looking.at === null && nodes.length > 0 && nodes[0]?.cost_per_min === undefined;
  const query = useApi(
    "/v1/fleet",
    { level: "agent", limit: 2_000 },
    { every: 5_000, keep: true, enabled: compact },
  );
  const full = useMemo(() => new Map(query.data?.nodes.map((node) => [node.id, node])), [query.data]);
  return useMemo(() => {
    const [find, hide] = [parseFind(looking.find), parseFind(looking.hide)];
    const shown = nodes.filter(
      (node) =>
        (looking.cluster === null || (node.cluster_id ?? "") === looking.cluster) &&
        (looking.group === null || (node.agent_type ?? "") === looking.group) &&
        (!find.ok || matches(find.terms, node)) &&
        !(hide.ok && hide.terms.length > 0 && matches(hide.terms, node)),
    );
    return ordered(
      shown.map((node) => rowOf(node as never, full.get(node.id))),
      looking.order,
    );
  }, [nodes, full, looking]);
}

export function FleetList({ looking, nodes, peek }: Props) {
  const [, setUrl] = useUrl();
  const rows = useRows(looking, nodes);
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(0);
  const walking = useRef(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollPaddingStart: ROW,
  });
  usePeekList(rows.slice(0, LISTED).map((row) => `agent:${row.id}`));
  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);

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
    if (event.key === "Enter") {
      const row = rows[at];
      if (row) setUrl({ peek: `agent:${row.id}` });
    } else if (by !== undefined) {
      const next = Math.min(rows.length - 1, Math.max(0, at + by));
      walking.current = true;
      setAt(next);
      virtual.scrollToIndex(next);
    } else return;
    event.preventDefault();
  };

  if (rows.length === 0 && nodes.length > 0)
    return (
      <Empty>No matches among {plural(nodes.length, "agent")}: change find, hide or the drill-down.</Empty>
    );
  return (
    <div className={classes.box} ref={box}>
      <table className={classes.table} aria-label="Agents" aria-rowcount={rows.length + 1} onKeyDown={walk}>
        <thead>
          <tr aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <th
                key={column.id}
                scope="col"
                className={classes.head}
                data-column={column.id}
                data-figure={column.figure || undefined}
                aria-sort={
                  looking.order.by === column.id ? (looking.order.down ? "descending" : "ascending") : "none"
                }
              >
                <UnstyledButton
                  className={classes.sort}
                  onClick={() =>
                    setUrl({ sort: orderText(turned(looking.order, column.id, column.figure)) }, true)
                  }
                >
                  {column.title}
                  <span aria-hidden>
                    {looking.order.by === column.id ? (looking.order.down ? " ↓" : " ↑") : ""}
                  </span>
                </UnstyledButton>
              </th>
            ))}
            <th scope="col" className={classes.head} data-column="acts">
              <span className="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {items.map((item) => {
            const row = rows[item.index];
            return row ? (
              <FleetRow
                key={row.id}
                row={row}
                index={item.index}
                reached={item.index === Math.min(at, rows.length - 1)}
                peeked={peek === `agent:${row.id}`}
                replayed={looking.at !== null}
                onReach={setAt}
              />
            ) : null;
          })}
          {after > 0 && <tr aria-hidden style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  );
}
