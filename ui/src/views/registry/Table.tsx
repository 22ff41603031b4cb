// The registry table: one row per type or capability, its instances below it when selected or searched for.
// Virtualised; arrow keys move, Enter opens, Space peeks, sorting is in the URL.
import { UnstyledButton } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { usePeekList } from "~/shell/peek";
import { useUrl } from "~/useUrl";
import { AgentRow, GroupRow } from "./Rows";
import { type FilteredGroups, type Filters, pressedSort, rowId, type SortKey } from "./registryRows";
import classes from "./Table.module.css";

const ROW = 28;
/** Rows the side panel's J and K can reach. */
const LISTED = 300;
const COLUMNS: readonly { id: SortKey; title: string }[] = [
  { id: "name", title: "Type / agent" },
  { id: "health", title: "Healthy" },
  { id: "version", title: "Version" },
  { id: "model", title: "Model" },
  { id: "trust", title: "Trust" },
  { id: "capabilities", title: "Other capabilities" },
  { id: "cluster", title: "Cluster" },
  { id: "hub", title: "Hub" },
  { id: "circuit", title: "Circuit" },
];

interface Props {
  picked: FilteredGroups;
  filters: Filters;
  chosen: string | undefined;
  peek: string | undefined;
  onSort: (sort: string) => void;
  onChoose: (name: string) => void;
}

export function Table({ picked: { rows }, filters, chosen, peek, onSort, onChoose }: Props) {
  const [, setUrl] = useUrl();
  const navigate = useNavigate();
  const box = useRef<HTMLDivElement>(null);
  const [reached, setReached] = useState(0);
  const at = Math.min(reached, Math.max(0, rows.length - 1));
  const walking = useRef(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollPaddingStart: ROW,
  });
  const listed = rows.flatMap((row) => (row.kind === "agent" ? [`agent:${row.agent.agent_id}`] : []));
  usePeekList([...new Set(listed)].slice(0, LISTED));
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

  const open = (index: number) => {
    const row = rows[index];
    if (row?.kind === "group") onChoose(row.group.name);
    else if (row) void navigate({ to: "/registry/$agentId", params: { agentId: row.agent.agent_id } });
  };
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
    if (event.key === "Enter") open(at);
    else if (event.key === " ") {
      if (row?.kind === "agent") setUrl({ peek: `agent:${row.agent.agent_id}` });
      else open(at);
    } else if (by !== undefined) {
      const next = Math.min(rows.length - 1, Math.max(0, at + by));
      walking.current = true;
      setReached(next);
      virtual.scrollToIndex(next);
    } else return;
    event.preventDefault();
  };

  return (
    <div className={classes.box} ref={box}>
      <table className={classes.table} aria-label="Registry" aria-rowcount={rows.length + 1} onKeyDown={walk}>
        <thead>
          <tr aria-rowindex={1}>
            {COLUMNS.map(({ id, title }) => (
              <th
                key={id}
                scope="col"
                className={classes.head}
                data-column={id}
                aria-sort={filters.sort === id ? (filters.down ? "descending" : "ascending") : "none"}
              >
                <UnstyledButton className={classes.sort} onClick={() => onSort(pressedSort(filters, id))}>
                  {title}
                  <span aria-hidden>{filters.sort === id ? (filters.down ? " ↓" : " ↑") : ""}</span>
                </UnstyledButton>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {items.map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            const shown = {
              index: item.index,
              reached: item.index === at,
              onReach: setReached,
            };
            return row.kind === "group" ? (
              <GroupRow
                key={rowId(row)}
                {...shown}
                onOpen={open}
                group={row.group}
                open={row.open}
                chosen={chosen === row.group.name}
              />
            ) : (
              <AgentRow
                key={rowId(row)}
                {...shown}
                agent={row.agent}
                peeked={peek === `agent:${row.agent.agent_id}`}
              />
            );
          })}
          {after > 0 && <tr aria-hidden style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  );
}
