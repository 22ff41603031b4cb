// Time spans as typed, and back: `90`, `5 min`, `1 h`, `7 d`. Pure.
const UNITS: readonly [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];
const NAMES: Record<string, number> = { "": 1, s: 1, sec: 1, m: 60, min: 60, h: 3_600, d: 86_400 };

/** The shortest exact form: 300 is `5 min`, 90 is `90 s`. */
export function spanText(seconds: number): string {
  if (seconds === 0) return "0 s";
  for (const [unit, size] of UNITS) if (seconds % size === 0) return `${seconds / size} ${unit}`;
  return `${seconds} s`;
}

/** Seconds; null if invalid. */
export function secondsOf(text: string): number | null {
  const [, figure, unit = ""] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text) ?? [];
  const size = NAMES[unit.toLowerCase()];
  return figure === undefined || size === undefined ? null : Number(figure) * size;
}

/** An error message, or none; both limits are inclusive. */
export function spanFault(text: string, least: number, most: number): string | undefined {
  const seconds = secondsOf(text);
  if (seconds === null) return "Enter a time such as 90 s, 5 min or 1 h.";
  if (seconds < least || seconds > most) return `Must be from ${spanText(least)} to ${spanText(most)}.`;
  return undefined;
}

/** A list of spans separated by commas: the retry delays. */
export function spansOf(text: string): number[] | null {
  const parts = text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
  const found = parts.map(secondsOf);
  return found.some((one) => one === null) ? null : (found as number[]);
}
