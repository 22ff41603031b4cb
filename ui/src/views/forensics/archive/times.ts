// Results over time as bars: heights, labels and the range between two of them. Pure.

import { plural } from "~/plural";
import type { TimeBin } from "~/protocol/openapi";
import { clock, clockToSecond, day } from "~/widgets/clock";

const DAY_MS = 86_400_000;

export const widthMs = (bin: TimeBin): number => Date.parse(bin.to) - Date.parse(bin.from);

/** A moment as precise as the bars are wide. */
export function moment(at: string, width: number, span: number): string {
  const when = Date.parse(at);
  const time = (width < 60_000 ? clockToSecond : clock)(when);
  if (width >= DAY_MS) return day(when);
  return span > DAY_MS ? `${day(when)} ${time}` : time;
}

export function said(bin: TimeBin, span: number): string {
  const width = widthMs(bin);
  const count = plural(bin.count, "message");
  return `${moment(bin.from, width, span)} – ${moment(bin.to, width, span)}: ${count}`;
}

/** Heights of 0–1; a bar that is not empty can be seen. */
export function heights(bins: readonly TimeBin[]): number[] {
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  return bins.map(({ count }) => (count === 0 ? 0 : Math.max(0.03, count / most)));
}

/** From the beginning of one bar to the last moment of another, in whichever order they were chosen. */
export function stretch(
  bins: readonly TimeBin[],
  a: number,
  b: number,
): { since: string; until: string } | null {
  const first = bins[Math.min(a, b)];
  const last = bins[Math.max(a, b)];
  if (!first || !last) return null;
  const until = new Date(Date.parse(last.to) - 1);
  return { since: new Date(first.from).toISOString(), until: until.toISOString() };
}
