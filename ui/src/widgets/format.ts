// Formatting of figures, times and states, the same everywhere: short in the line, exact on hover. Pure.
import { WHOLE } from "~/locale";

export type NodeState = "idle" | "active" | "alert_entropy" | "schema_violation" | "dead" | "blocked";

/** The gateway sends colour, mark and shape of each state as `sign` records; these are used until then. */
export const STATE_SIGNS: Record<NodeState, { word: string; mark: string; tone: string }> = {
  idle: { word: "idle", mark: "·", tone: "idle" },
  active: { word: "active", mark: "▸", tone: "active" },
  alert_entropy: { word: "looping", mark: "⟲", tone: "alert" },
  schema_violation: { word: "schema violation", mark: "!", tone: "violation" },
  dead: { word: "dead", mark: "×", tone: "dead" },
  blocked: { word: "held", mark: "‖", tone: "blocked" },
};

export function short(n: number): string {
  const size = Math.abs(n);
  if (size >= 1e9) return `${trim(n / 1e9)}B`;
  if (size >= 1e6) return `${trim(n / 1e6)}M`;
  if (size >= 1e4) return `${trim(n / 1e3)}k`;
  if (Number.isInteger(n)) return WHOLE.format(n);
  return size >= 100 ? Math.round(n).toString() : trim(n);
}

function trim(n: number): string {
  return (Math.abs(n) >= 100 ? n.toFixed(0) : Math.abs(n) >= 10 ? n.toFixed(1) : n.toFixed(2)).replace(
    /\.0+$|(\.\d*[1-9])0+$/,
    "$1",
  );
}

export function money(dollars: number): string {
  const size = Math.abs(dollars);
  if (size === 0) return "$0";
  if (size < 0.01) return `$${dollars.toFixed(4)}`;
  if (size < 100) return `$${dollars.toFixed(2)}`;
  return `$${short(Math.round(dollars))}`;
}

export function rate(perSecond: number): string {
  return `${short(Math.round(perSecond * 10) / 10)} msg/s`;
}

/** A span as text: `now`, `40 s`, `3 min`, `2 h`, `5 d`. */
export function span(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 1) return "now";
  if (s < 90) return `${Math.floor(s)} s`;
  if (s < 90 * 60) return `${Math.floor(s / 60)} min`;
  if (s < 36 * 3600) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

export function ago(at: string, nowMs: number): string {
  const text = span(nowMs - Date.parse(at));
  return text === "now" ? text : `${text} ago`;
}

export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return value >= 10_000
    ? span(value)
    : value >= 1000
      ? `${(value / 1000).toFixed(1)} s`
      : `${Math.round(value)} ms`;
}
