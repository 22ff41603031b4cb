// The time strip's arithmetic: the minute of a position, the position of a minute, and its label. Pure.
import { span } from "~/widgets/format";

export const MINUTE_MS = 60_000;
/** How far back the strip reaches: hours, in minutes. */
export const REACHES = [60, 180, 720] as const;
export type Reach = (typeof REACHES)[number];

export interface Strip {
  /** Begin of the running minute: the strip's right end. */
  end: number;
  /** Length of the strip in minutes. */
  reach: number;
}

export function stripAt(nowMs: number, reach: number): Strip {
  return { end: nowMs - (nowMs % MINUTE_MS), reach };
}

/** Minutes back at a share of the strip's width; 0 at the right end is now. */
export function backOf(share: number, strip: Strip): number {
  return Math.round((1 - Math.min(1, Math.max(0, share))) * strip.reach);
}

/** The position of a time, as a share of the width; null if it is not on the strip. */
export function shareOf(ms: number, strip: Strip): number | null {
  const share = 1 - (strip.end - ms) / MINUTE_MS / strip.reach;
  return share < 0 || share > 1 + 1 / strip.reach ? null : Math.min(1, share);
}

/** `back` minutes ago as text for the URL; null is live. */
export function atOf(back: number, strip: Strip): string | null {
  if (back <= 0) return null;
  const ms = strip.end - Math.min(back, strip.reach) * MINUTE_MS;
  return `${new Date(ms).toISOString().slice(0, 16)}:00Z`;
}

export function backFrom(at: string | null, strip: Strip): number {
  return at === null ? 0 : Math.round((strip.end - Date.parse(at)) / MINUTE_MS);
}

/**
 * What a key does to the minutes back: arrows a minute, pages ten, Home and End the ends; null for other
 * keys.
 */
export function stepped(key: string, back: number, reach: number): number | null {
  const step = { ArrowLeft: 1, ArrowDown: 1, ArrowRight: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[key];
  if (step !== undefined) return Math.min(reach, Math.max(0, back + step));
  if (key === "Home") return reach;
  return key === "End" ? 0 : null;
}

export function clock(ms: number, zone?: string): string {
  return new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone });
}

/** "replaying 14:32, 12 min ago" */
export function replayLabel(at: string, nowMs: number, zone?: string): string {
  const ms = Date.parse(at);
  const ago = Math.max(0, nowMs - ms);
  const text = ago < 90 * MINUTE_MS ? `${Math.floor(ago / MINUTE_MS)} min` : span(ago);
  return `replaying ${clock(ms, zone)}, ${text} ago`;
}

export interface Tick {
  share: number;
  text: string;
}

/** Round times along the strip: every 10 minutes of an hour, every half hour of three, every two hours of twelve. */
export function ticks(strip: Strip, zone?: string): Tick[] {
  const every = (strip.reach <= 60 ? 10 : strip.reach <= 180 ? 30 : 120) * MINUTE_MS;
  const made: Tick[] = [];
  for (let ms = strip.end - (strip.end % every); ; ms -= every) {
    const share = shareOf(ms, strip);
    if (share === null) return made.reverse();
    made.push({ share, text: clock(ms, zone) });
  }
}
