// Placement of incident cards: next to their node, outwards if there is space, never over each other nor over
// another incident's node. A card without space is not shown; the worst come first. Pure.

export interface PlacedCard {
  /** The node. */
  x: number;
  y: number;
  r: number;
  /** The card. */
  width: number;
  height: number;
}

export interface Spot {
  x: number;
  y: number;
}

interface Box extends Spot {
  width: number;
  height: number;
}

const GAP = 10;
const EDGE = 4;
const STEP = 20;
const REACH = 7;

function apart(a: Box, b: Box): boolean {
  return a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
}

const disc = ({ x, y, r }: PlacedCard): Box => ({ x: x - r, y: y - r, width: 2 * r, height: 2 * r });

/** 0, -1, 1, -2, 2, …: level with the node first, then ever farther from it. */
function* shifts(): Generator<number> {
  yield 0;
  for (let n = 1; n <= REACH; n += 1) {
    yield -n;
    yield n;
  }
}

export function placeCallouts(cards: readonly PlacedCard[], width: number, height: number): (Spot | null)[] {
  const taken: Box[] = [];
  return cards.map((card, n) => {
    const others = cards.filter((_, m) => m !== n).map(disc);
    const right = card.x + card.r + GAP;
    const left = card.x - card.r - GAP - card.width;
    const sides = card.x < width / 2 ? [left, right] : [right, left];
    for (const x of sides) {
      if (x < EDGE || x + card.width > width - EDGE) continue;
      for (const shift of shifts()) {
        const y = card.y - card.height / 2 + shift * STEP;
        if (y < EDGE || y + card.height > height - EDGE) continue;
        const box = { x, y, width: card.width, height: card.height };
        if (![...taken, ...others].every((other) => apart(box, other))) continue;
        taken.push(box);
        return { x, y };
      }
    }
    return null;
  });
}
