// Fuzzy match score of a few typed letters: they appear as typed, or are beginnings of its words in order
// (`rb3` is researcher-beta-3). Scattered letters do not match: in long texts everything would. Pure; null is
// no match.

export interface Match {
  score: number;
  marks: number[];
}

const START = 8;
const RUN = 5;
const WHOLE = 20;

function starts(text: string, at: number): boolean {
  return at === 0 || /[\s\-_/.:→]/.test(text[at - 1] as string);
}

export function fuzzy(typed: string, text: string): Match | null {
  const wanted = typed.trim().toLowerCase();
  const there = text.toLowerCase();
  if (wanted === "") return { score: 0, marks: [] };
  const whole = there.indexOf(wanted);
  if (whole !== -1) {
    const marks = Array.from(wanted, (_, n) => whole + n);
    const edge = starts(there, whole) ? START : 0;
    return { score: WHOLE + edge + wanted.length * RUN - whole * 0.05 - there.length * 0.01, marks };
  }
  const marks: number[] = [];
  let score = 0;
  let from = 0;
  for (const letter of wanted) {
    if (letter === " ") continue;
    const at = best(there, letter, from, marks.at(-1));
    if (at === -1) return null;
    const before = marks.at(-1);
    if (before !== undefined && at === before + 1) score += RUN;
    else score -= before === undefined ? 0 : Math.min(3, (at - before) * 0.1);
    if (starts(there, at)) score += START;
    marks.push(at);
    from = at + 1;
  }
  return { score: score - there.length * 0.01, marks };
}

/** The next letter of a run first, then the next beginning of a word. */
function best(text: string, letter: string, from: number, before: number | undefined): number {
  if (before !== undefined && text[before + 1] === letter) return before + 1;
  for (let at = text.indexOf(letter, from); at !== -1; at = text.indexOf(letter, at + 1))
    if (starts(text, at)) return at;
  return -1;
}

/** The best matches of a list, best first; with nothing typed, the list's own order. */
export function ranked<T>(typed: string, items: readonly T[], name: (item: T) => string, most: number): T[] {
  if (typed.trim() === "") return items.slice(0, most);
  const found: { item: T; score: number }[] = [];
  for (const item of items) {
    const match = fuzzy(typed, name(item));
    if (match) found.push({ item, score: match.score });
  }
  return found
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ item }) => item);
}
