// Cost heatmap: clusters down, time across, more expensive is brighter. A cell, by mouse or keyboard, shows
// which agents of the cluster spent most then and in which session and branch; the same figures are available
// as a table.
import { SegmentedControl, Switch } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import type { HeatmapAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { money } from "~/widgets/format";
import { Empty, Loaded } from "~/widgets/Panel";
import { clock } from "../strip";
import { Branch } from "./Branch";
import classes from "./CostHeat.module.css";
import { cellName, type HeatRow, heatRows, moved, warmth } from "./heat";

type Bucket = "minute" | "hour";
/** By name and time, so that a cell keeps its identity when the grid advances by a minute. */
interface At {
  row: string;
  column: string;
}

export function CostHeat() {
  const [search, setUrl] = useUrl();
  const bucket: Bucket = search.heat === "hour" ? "hour" : "minute";
  const [table, setTable] = useState(false);
  const query = useApi(
    "/v1/costs/heatmap",
    { by: "cluster", bucket, limit: 12 },
    { every: 10_000, keep: true },
  );
  return (
    <div className={classes.box}>
      <div className={classes.choice}>
        <SegmentedControl
          size="xs"
          aria-label="Cost heatmap range"
          data={[
            { value: "minute", label: "1 h" },
            { value: "hour", label: "24 h" },
          ]}
          value={bucket}
          onChange={(value) => setUrl({ heat: value === "hour" ? "hour" : null }, true)}
        />
        <Switch
          size="xs"
          label="as a table"
          checked={table}
          onChange={(event) => setTable(event.currentTarget.checked)}
        />
      </div>
      <Loaded query={query}>
        {(answer) => {
          const rows = heatRows(answer);
          if (rows.length === 0) return <Empty>No agent has reported a cost in this time.</Empty>;
          return table ? <Table answer={answer} rows={rows} /> : <Grid answer={answer} rows={rows} />;
        }}
      </Loaded>
    </div>
  );
}

function Grid({ answer, rows }: { answer: HeatmapAnswer; rows: HeatRow[] }) {
  const columns = answer.columns;
  const [at, setAt] = useState<At | null>(null);
  const most = useMemo(() => Math.max(0, ...rows.flatMap((row) => row.values)), [rows]);
  const shown = rows.find((row) => row.name === at?.row);
  const column = at ? columns.indexOf(at.column) : -1;
  const cost = shown?.values[column] ?? 0;
  const held = { row: shown ? rows.indexOf(shown) : 0, column: column === -1 ? columns.length - 1 : column };
  const point = (r: number, c: number) => {
    const [row, to] = [rows[r], columns[c]];
    if (row && to) setAt({ row: row.name, column: to });
  };
  const go = (event: React.KeyboardEvent) => {
    const next = moved(event.key, held, rows.length, columns.length);
    if (!next) return;
    event.preventDefault();
    point(next.row, next.column);
    const cells = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role="gridcell"]');
    cells[next.row * columns.length + next.column]?.focus();
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a table cannot be walked by arrow keys; a grid can */}
      <div className={classes.grid} role="grid" aria-label="Cost by cluster and time" onKeyDown={go}>
        {rows.map((row, r) => (
          // biome-ignore lint/a11y/useSemanticElements: part of the grid
          <div role="row" key={row.name} className={classes.row} tabIndex={-1}>
            {/* biome-ignore lint/a11y/useSemanticElements: part of the grid */}
            <span
              role="rowheader"
              className={classes.name}
              title={`${row.name}: ${money(row.total)}`}
              tabIndex={-1}
            >
              {row.name}
            </span>
            <span className={classes.cells} role="presentation">
              {row.values.map((value, c) => (
                // biome-ignore lint/a11y/useSemanticElements: part of the grid
                <span
                  role="gridcell"
                  key={columns[c]}
                  tabIndex={held.row === r && held.column === c ? 0 : -1}
                  aria-label={cellName(row, columns[c] ?? "", value)}
                  data-warmth={warmth(value, most)}
                  data-at={(at?.row === row.name && column === c) || undefined}
                  onMouseEnter={() => point(r, c)}
                  onFocus={() => point(r, c)}
                />
              ))}
            </span>
          </div>
        ))}
      </div>
      <p className={classes.axis} aria-hidden>
        <span className={classes.scale}>
          $0
          {[1, 2, 3, 4, 5, 6].map((step) => (
            <i key={step} data-warmth={step} />
          ))}
          {money(most)}
        </span>
        <span>{clock(Date.parse(columns[0] ?? ""))}</span>
        <span>now</span>
      </p>
      <div className={classes.detail} aria-live="polite">
        {shown && at && column !== -1 ? (
          <Settled key={`${at.row} ${at.column}`}>
            <Branch
              cluster={shown.id}
              title={cellName(shown, at.column, cost)}
              column={at.column}
              bucket={answer.bucket}
              cost={cost}
            />
          </Settled>
        ) : (
          <span className={classes.hint}>
            {money(answer.total)} total. Point at a cell to see the top spenders.
          </span>
        )}
      </div>
    </>
  );
}

/** Details are fetched only for a cell the pointer rests on. */
function Settled({ children }: { children: React.ReactNode }) {
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), 180);
    return () => clearTimeout(timer);
  }, []);
  return settled ? children : <span className={classes.hint}>…</span>;
}

function Table({ answer, rows }: { answer: HeatmapAnswer; rows: HeatRow[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <section className={classes.scroll} tabIndex={0} aria-label="Cost by cluster as a table">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">cluster</th>
            <th scope="col">total</th>
            <th scope="col">share</th>
            <th scope="col">last five {answer.bucket}s</th>
            <th scope="col">most expensive {answer.bucket}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const most = Math.max(...row.values);
            const when = answer.columns[row.values.indexOf(most)];
            return (
              <tr key={row.name}>
                <th scope="row">{row.name}</th>
                <td>{money(row.total)}</td>
                <td>{answer.total > 0 ? `${Math.round((100 * row.total) / answer.total)} %` : "–"}</td>
                <td>{money(row.values.slice(-5).reduce((sum, value) => sum + value, 0))}</td>
                <td>{when ? `${money(most)} at ${clock(Date.parse(when))}` : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
