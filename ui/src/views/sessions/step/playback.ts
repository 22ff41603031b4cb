// Reasoning playback: how much text is shown after a number of characters, and how far a moment advances at a
// speed. Pure; the clock is the page's animation frame.

export const SPEEDS = [1, 2, 4] as const;
const CHARACTERS_PER_S = 55;
const REST = 14; // pause between two thoughts, in characters

export function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length, 0) + REST * Math.max(0, lines.length - 1);
}

export function advanced(written: number, ms: number, speed: number): number {
  return written + (ms / 1000) * CHARACTERS_PER_S * speed;
}

/** The lines started so far, the last of them perhaps in part. */
export function shownAt(lines: readonly string[], written: number): string[] {
  const shown: string[] = [];
  let left = Math.floor(written);
  for (const line of lines) {
    if (left <= 0) break;
    shown.push(line.slice(0, left));
    left -= line.length + REST;
  }
  return shown;
}
