// The cost heatmap's arithmetic: how warm a cell is, its label, and the query for its branch. Pure.
import type { HeatmapAnswer } from "~/protocol/openapi";
import { money } from "~/widgets/format";
import { clock } from "../strip";

/** Steps of warmth, so that a cell differs visibly from its neighbour; 0 is nothing spent. */
export const STEPS = 6;

/** By the root: most cells are small compared to the most expensive, and must still differ from none. */
export function warmth(value: number, most: number): number {
  if (value <= 0 || most <= 0) return 0;
  return Math.min(STEPS, 1 + Math.floor(Math.sqrt(value / most) * (STEPS - 0.001)));
}

export interface HeatRow {
  id: string | null;
  name: string;
  total: number;
  values: number[];
}

/** The listed rows, and `others` as a last one when it spent anything. */
export function heatRows(answer: HeatmapAnswer): HeatRow[] {
  const rows: HeatRow[] = answer.rows.map((row) => ({ ...row, name: row.id ?? "no cluster" }));
  const rest = answer.others.reduce((sum, value) => sum + value, 0);
  if (rest > 0) rows.push({ id: null, name: "all others", total: rest, values: answer.others });
  return rows;
}

export function columnMs(bucket: HeatmapAnswer["bucket"]): number {
  return bucket === "hour" ? 3_600_000 : 60_000;
}

/** "aws-eu-central-1, 14:32: $0.12" */
export function cellName(row: HeatRow, column: string, value: number): string {
  return `${row.name}, ${clock(Date.parse(column))}: ${money(value)}`;
}

/** The span of a cell for the costs endpoint; `until` is the last moment within. */
export function cellSpan(column: string, bucket: HeatmapAnswer["bucket"]): { since: string; until: string } {
  const from = Date.parse(column);
  return {
    since: new Date(from).toISOString(),
    until: new Date(from + columnMs(bucket) - 1_000).toISOString(),
  };
}

/** Where the keyboard goes in a grid; stays within it. */
export function moved(
  key: string,
  at: { row: number; column: number },
  rows: number,
  columns: number,
): { row: number; column: number } | null {
  const step: Record<string, [number, number]> = {
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    Home: [0, -columns],
    End: [0, columns],
  };
  const by = step[key];
  if (!by) return null;
  const within = (n: number, size: number) => Math.min(size - 1, Math.max(0, n));
  return { row: within(at.row + by[0], rows), column: within(at.column + by[1], columns) };
}
