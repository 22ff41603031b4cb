// How a state, an edge and a type look: colour, mark and shape together, because colour is never the only
// sign (ruling 40). Surfaces and text come from the page's tokens; the state colours are fixed and the same
// in both themes, but the text in them must be readable, so each has a second colour for text.
import type { EdgeStatus, NodeState, SignRecord } from "./types";

export type Shape = "circle" | "disc" | "octagon" | "triangle" | "cross" | "square";

export interface Sign {
  colour: string;
  mark: string;
  shape: Shape;
  flashing: boolean;
  word: string;
}

export const STATES: Record<NodeState, Sign> = {
  idle: { colour: "#6b7280", mark: "·", shape: "circle", flashing: false, word: "idle" },
  active: { colour: "#3b82f6", mark: "▸", shape: "disc", flashing: false, word: "active" },
  alert_entropy: { colour: "#ef4444", mark: "⟲", shape: "octagon", flashing: true, word: "loop" },
  schema_violation: { colour: "#f97316", mark: "!", shape: "triangle", flashing: false, word: "violation" },
  dead: { colour: "#374151", mark: "×", shape: "cross", flashing: false, word: "dead" },
  blocked: { colour: "#f59e0b", mark: "‖", shape: "square", flashing: false, word: "blocked" },
};

/** The most urgent first; the same order in which the gateway sums a group up. */
export const WORST: readonly NodeState[] = [
  "alert_entropy",
  "schema_violation",
  "blocked",
  "dead",
  "active",
  "idle",
];
export const NEEDS_A_LOOK: ReadonlySet<NodeState> = new Set<NodeState>([
  "alert_entropy",
  "schema_violation",
  "blocked",
  "dead",
]);

export const worse = (a: NodeState, b: NodeState): NodeState =>
  WORST.indexOf(a) <= WORST.indexOf(b) ? a : b;

export const EDGE_RANK: Record<EdgeStatus, number> = { Healthy: 0, Alert: 1, Blocked: 2 };

/** The gateway's sign takes precedence over the built-in one. */
export function signed(known: Record<NodeState, Sign>, record: SignRecord): Record<NodeState, Sign> {
  const held = known[record.state];
  if (!held) return known;
  const sign = { ...held, colour: record.colour, mark: record.mark, flashing: record.flashing };
  return { ...known, [record.state]: sign };
}

export interface Theme {
  dark: boolean;
  canvas: string;
  surface1: string;
  surface2: string;
  surface3: string;
  hairline: string;
  hairlineStrong: string;
  text1: string;
  text2: string;
  text3: string;
  accent: string;
  accentSoft: string;
  text: Record<NodeState, string>;
  font: string;
}

export const DARK: Theme = {
  dark: true,
  canvas: "#0b0e14",
  surface1: "#11151e",
  surface2: "#161b26",
  surface3: "#202634",
  hairline: "rgba(255,255,255,0.08)",
  hairlineStrong: "rgba(255,255,255,0.16)",
  text1: "rgba(255,255,255,0.92)",
  text2: "rgba(255,255,255,0.72)",
  text3: "rgba(255,255,255,0.58)",
  accent: "#7c9cff",
  accentSoft: "rgba(124,156,255,0.16)",
  text: {
    idle: "#9aa1ad",
    active: "#7db1ff",
    alert_entropy: "#ff8080",
    schema_violation: "#fdab6b",
    dead: "#9aa1ad",
    blocked: "#fbc25a",
  },
  font: 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
};

/** The page's design tokens, computed at the canvas element. */
export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const token = (name: string, otherwise: string) => style.getPropertyValue(name).trim() || otherwise;
  const canvas = token("--canvas", DARK.canvas);
  return {
    dark: lightness(canvas) < 0.5,
    canvas,
    surface1: token("--surface-1", DARK.surface1),
    surface2: token("--surface-2", DARK.surface2),
    surface3: token("--surface-3", DARK.surface3),
    hairline: token("--hairline", DARK.hairline),
    hairlineStrong: token("--hairline-strong", DARK.hairlineStrong),
    text1: token("--text-1", DARK.text1),
    text2: token("--text-2", DARK.text2),
    text3: token("--text-3", DARK.text3),
    accent: token("--accent", DARK.accent),
    accentSoft: token("--accent-soft", DARK.accentSoft),
    text: {
      idle: token("--idle-text", DARK.text.idle),
      active: token("--active-text", DARK.text.active),
      alert_entropy: token("--alert-text", DARK.text.alert_entropy),
      schema_violation: token("--violation-text", DARK.text.schema_violation),
      dead: token("--dead-text", DARK.text.dead),
      blocked: token("--blocked-text", DARK.text.blocked),
    },
    font: style.fontFamily || DARK.font,
  };
}

/** Perceived lightness of #rgb or #rrggbb, 0 to 1; anything else counts as dark. */
export function lightness(colour: string): number {
  const hex = colour.startsWith("#") ? colour.slice(1) : "";
  const wide = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
  if (!/^[0-9a-f]{6}$/i.test(wide)) return 0;
  const [red, green, blue] = [0, 2, 4].map((at) => Number.parseInt(wide.slice(at, at + 2), 16) / 255);
  return 0.299 * (red ?? 0) + 0.587 * (green ?? 0) + 0.114 * (blue ?? 0);
}

/** A #rrggbb colour with an alpha, in the form a canvas accepts. */
export function faded(colour: string, alpha: number): string {
  const hex = colour.startsWith("#") && colour.length === 7 ? colour : "#808080";
  const part = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},${Math.round(alpha * 1000) / 1000})`;
}

/**
 * Two letters for a type, the same everywhere: `web_researcher` WR, `planner` Pl. Letters rather than icons:
 * they can be read aloud, are in every font, and need not be learnt.
 */
export function glyph(type: string | null): string {
  const words = (type ?? "").split(/[^\p{L}\p{N}]+|(?<=\p{Ll})(?=\p{Lu})/u).filter((word) => word !== "");
  const [first, second] = words;
  if (!first) return "?";
  if (second) return (first.slice(0, 1) + second.slice(0, 1)).toUpperCase();
  return first.slice(0, 1).toUpperCase() + first.slice(1, 2).toLowerCase();
}

/** 1234 → "1.2k", for the map; the exact figure is shown by the host. */
export function short(value: number): string {
  if (value >= 1_000_000) return `${trimmed(value / 1_000_000)}M`;
  if (value >= 1_000) return `${trimmed(value / 1_000)}k`;
  if (value >= 10 || value === 0) return String(Math.round(value));
  return trimmed(value);
}

const trimmed = (value: number): string => {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
};

export const perMinute = (usd: number): string =>
  usd <= 0 ? "" : `$${usd < 0.01 ? usd.toFixed(4) : usd < 10 ? usd.toFixed(2) : short(usd)}/min`;
