// The schedule timeline: sorted lanes, cells with run results, positions on the strip. Sums are the
// gateway's; nothing here fetches. Pure.

import type { Timeline, TimelineBin, TimelineLane } from "~/protocol/openapi";
import { clock, weekdayClock } from "~/widgets/clock";

/** Hours back and ahead. */
export const WINDOWS = ["1", "6", "24"] as const;
export type Window = (typeof WINDOWS)[number];

export function windowOf(text: string | undefined): Window {
  return WINDOWS.find((one) => one === text) ?? "24";
}

/** A cell contains a mark and a number of up to three digits; fewer cells on a narrow screen. */
export function binsFor(width: number): number {
  if (width < 420) return 12;
  if (width < 720) return 24;
  return width < 1_700 ? 48 : 96;
}

export type What = "failed" | "missed" | "waiting" | "late" | "sent" | "planned";
export const SIGNS: Record<What, { mark: string; word: string; tone: string; means: string }> = {
  failed: { mark: "×", word: "failed", tone: "alert", means: "out of retries; kept as a dead letter" },
  missed: {
    mark: "○",
    word: "missed",
    tone: "violation",
    means: "skipped: late, or the previous run was active",
  },
  waiting: { mark: "…", word: "waiting", tone: "blocked", means: "held, queued, or retrying" },
  late: { mark: "!", word: "late", tone: "blocked", means: "due, but not run yet" },
  sent: { mark: "✓", word: "sent", tone: "good", means: "delivered, or queued in the agent's inbox" },
  planned: { mark: "·", word: "planned", tone: "idle", means: "still to come" },
};
/** A cell shows the worst of these. */
export const ORDER: readonly What[] = ["failed", "missed", "waiting", "late", "sent", "planned"];

export interface Cell {
  at: number;
  until: number;
  counts: Partial<Record<What, number>>;
  worst: What;
  /** The number of the worst state, shown next to the mark. */
  shown: number;
  /** The gateway's count in this bin was capped. */
  more: boolean;
}

export interface Lane {
  job_id: string;
  name: string;
  state: TimelineLane["state"];
  cells: Cell[];
}

function cellOf(bin: TimelineBin, length: number, now: number, most: number): Cell {
  const at = Date.parse(bin.at);
  const until = at + length;
  const overdue = until <= now;
  const counts: Cell["counts"] = {};
  for (const what of ["failed", "missed", "waiting", "sent"] as const)
    if (bin[what] > 0) counts[what] = bin[what];
  if (bin.planned > 0) counts[overdue ? "late" : "planned"] = bin.planned;
  const worst = ORDER.find((what) => counts[what] !== undefined) ?? "planned";
  const shown = counts[worst] ?? 0;
  return { at, until, counts, worst, shown, more: bin.planned >= most || bin.missed >= most };
}

/** Failing jobs first, then by next run, then inactive ones. */
export function lanesOf({ lanes, bin_s, now, most }: Timeline): Lane[] {
  const moment = Date.parse(now);
  const made = lanes.map((lane) => ({
    job_id: lane.job_id,
    name: lane.name,
    state: lane.state,
    cells: lane.bins.map((bin) => cellOf(bin, bin_s * 1000, moment, most)),
  }));
  const trouble = (lane: Lane) =>
    Math.min(...lane.cells.map(({ worst }) => ORDER.indexOf(worst)), ORDER.length);
  const rank = (lane: Lane) => (trouble(lane) <= 3 ? trouble(lane) : 4);
  const next = (lane: Lane) =>
    lane.cells.find(({ counts }) => counts.planned)?.at ?? (lane.cells.length > 0 ? 8e15 : 9e15);
  return made.sort((a, b) => rank(a) - rank(b) || next(a) - next(b) || a.name.localeCompare(b.name));
}

/** The position of a moment, from 0 to 1. */
export function placeOf(at: number, { from, until }: Pick<Timeline, "from" | "until">): number {
  const [low, high] = [Date.parse(from), Date.parse(until)];
  return Math.min(1, Math.max(0, (at - low) / (high - low)));
}

export type Sums = Record<What, number>;

export function sumsOf(lanes: readonly Lane[]): Sums {
  const sums: Sums = { failed: 0, missed: 0, waiting: 0, late: 0, sent: 0, planned: 0 };
  for (const { cells } of lanes)
    for (const { counts } of cells) for (const what of ORDER) sums[what] += counts[what] ?? 0;
  return sums;
}

export function countsText(counts: Cell["counts"], more = false): string {
  const parts = ORDER.flatMap((what) => (counts[what] ? [`${counts[what]} ${SIGNS[what].word}`] : []));
  return (parts.join(", ") || "nothing") + (more ? " or more" : "");
}

/** `Mon 14:00–15:00`, in the viewer's zone. */
export function spanLabel(from: number, until: number): string {
  return `${weekdayClock(from)}–${clock(until)}`;
}

/** Tick labels of the strip: whole hours (or quarters), limited in number. */
export function ticksOf(
  { from, until }: Pick<Timeline, "from" | "until">,
  most: number,
): { at: number; place: number; text: string }[] {
  const [low, high] = [Date.parse(from), Date.parse(until)];
  const minutes = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720].find(
    (one) => (high - low) / (one * 60_000) <= most,
  );
  const step = (minutes ?? 1_440) * 60_000;
  // Whole hours of the viewer's clock, not of UTC's.
  const shift = new Date(low).getTimezoneOffset() * 60_000;
  const ticks = [];
  for (let at = Math.ceil((low - shift) / step) * step + shift; at < high; at += step) {
    const place = (at - low) / (high - low);
    if (place > 0.02 && place < 0.98) ticks.push({ at, place, text: clock(at) });
  }
  return ticks;
}

export interface Spot {
  lane: number;
  cell: number;
}

/** The target of an arrow key: along the lane, or to the cell of the next lane that is nearest in time. */
export function stepFrom(lanes: readonly Lane[], { lane, cell }: Spot, key: string): Spot | null {
  const here = lanes[lane]?.cells ?? [];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = cell + (key === "ArrowRight" ? 1 : -1);
    return here[next] ? { lane, cell: next } : null;
  }
  if (key === "Home") return here.length ? { lane, cell: 0 } : null;
  if (key === "End") return here.length ? { lane, cell: here.length - 1 } : null;
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const by = key === "ArrowDown" ? 1 : -1;
  const at = here[cell]?.at ?? 0;
  for (let n = lane + by; n >= 0 && n < lanes.length; n += by) {
    const cells = lanes[n]?.cells ?? [];
    if (cells.length === 0) continue;
    let nearest = 0;
    for (let m = 1; m < cells.length; m += 1)
      if (Math.abs((cells[m]?.at ?? 0) - at) < Math.abs((cells[nearest]?.at ?? 0) - at)) nearest = m;
    return { lane: n, cell: nearest };
  }
  return null;
}
