// Line diff of two texts: the shortest edit (Myers) with equal head and tail removed first. Pure. Beyond a
// bound it does not search for the shortest: everything old removed, everything new added.

export interface Line {
  kind: "same" | "out" | "in";
  text: string;
  /** Number of the line in the old and in the new text, from 1; null if absent. */
  old: number | null;
  now: number | null;
}
export interface Gap {
  kind: "gap";
  hidden: number;
}

const MAX_EDITS = 300;

export function linesOf(before: string, after: string): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  )
    tail += 1;
  const lines: Line[] = [];
  for (let n = 0; n < head; n += 1)
    lines.push({ kind: "same", text: a[n] as string, old: n + 1, now: n + 1 });
  for (const { kind, at, to } of shortest(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) {
    if (kind === "same")
      lines.push({ kind, text: a[head + at] as string, old: head + at + 1, now: head + to + 1 });
    else if (kind === "out")
      lines.push({ kind, text: a[head + at] as string, old: head + at + 1, now: null });
    else lines.push({ kind, text: b[head + to] as string, old: null, now: head + to + 1 });
  }
  for (let n = tail; n > 0; n -= 1) {
    lines.push({
      kind: "same",
      text: a[a.length - n] as string,
      old: a.length - n + 1,
      now: b.length - n + 1,
    });
  }
  return lines;
}

interface Move {
  kind: Line["kind"];
  at: number;
  to: number;
}

/** E. Myers, An O(ND) Difference Algorithm (1986): the furthest reach of each diagonal, then the way back. */
function shortest(a: string[], b: string[]): Move[] {
  const size = Math.min(a.length + b.length, MAX_EDITS);
  const reach = new Map<number, number>([[1, 0]]);
  const trail: Map<number, number>[] = [];
  for (let edits = 0; edits <= size; edits += 1) {
    trail.push(new Map(reach));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return way(trail, a.length, b.length);
    }
  }
  return [
    ...a.map((_, at) => ({ kind: "out", at, to: 0 }) as Move),
    ...b.map((_, to) => ({ kind: "in", at: 0, to }) as Move),
  ];
}

function way(trail: Map<number, number>[], lengthA: number, lengthB: number): Move[] {
  const moves: Move[] = [];
  let x = lengthA;
  let y = lengthB;
  for (let edits = trail.length - 1; edits >= 0; edits -= 1) {
    const reach = trail[edits] as Map<number, number>;
    const k = x - y;
    const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : (reach.get(fromK) ?? 0);
    const fromY = edits === 0 ? 0 : fromX - fromK;
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      x -= 1;
      y -= 1;
      moves.push({ kind: "same", at: x, to: y });
    }
    if (edits > 0) {
      moves.push(down ? { kind: "in", at: x, to: y - 1 } : { kind: "out", at: x - 1, to: y });
      x = fromX;
      y = fromY;
    }
  }
  return moves.reverse();
}

/** Only changes and `around` lines next to them; what is left out is counted. */
export function folded(lines: readonly Line[], around = 3): (Line | Gap)[] {
  const near = new Set<number>();
  lines.forEach((line, n) => {
    if (line.kind === "same") return;
    for (let at = n - around; at <= n + around; at += 1) near.add(at);
  });
  const shown: (Line | Gap)[] = [];
  lines.forEach((line, n) => {
    const last = shown.at(-1);
    if (near.has(n)) shown.push(line);
    else if (last?.kind === "gap") last.hidden += 1;
    else shown.push({ kind: "gap", hidden: 1 });
  });
  return shown;
}

export function counted(lines: readonly Line[]): { into: number; out: number } {
  return {
    into: lines.filter((line) => line.kind === "in").length,
    out: lines.filter((line) => line.kind === "out").length,
  };
}
