// Label placement. Greedy: the most important labels come first (selected, then alerting, then by size:
// draw/blocks.ts), and a label without space is left out, so text never overlaps. Text widths are measured
// once.

const CELL = 48;

/** Rectangles taken so far, in a grid: each check looks at its neighbourhood only. */
export class Room {
  private readonly cells = new Map<number, number[]>();
  private readonly boxes: number[] = [];

  clear(): void {
    this.cells.clear();
    this.boxes.length = 0;
  }

  /** Takes the rectangle if it is free. */
  take(x0: number, y0: number, x1: number, y1: number): boolean {
    if (!this.isFree(x0, y0, x1, y1)) return false;
    this.block(x0, y0, x1, y1);
    return true;
  }

  /** Takes it, free or not. */
  block(x0: number, y0: number, x1: number, y1: number): void {
    const index = this.boxes.length;
    this.boxes.push(x0, y0, x1, y1);
    for (let col = Math.floor(x0 / CELL); col <= Math.floor(x1 / CELL); col++) {
      for (let row = Math.floor(y0 / CELL); row <= Math.floor(y1 / CELL); row++) {
        const key = keyOf(col, row);
        const held = this.cells.get(key);
        if (held) held.push(index);
        else this.cells.set(key, [index]);
      }
    }
  }

  isFree(x0: number, y0: number, x1: number, y1: number): boolean {
    const { boxes } = this;
    for (let col = Math.floor(x0 / CELL); col <= Math.floor(x1 / CELL); col++) {
      for (let row = Math.floor(y0 / CELL); row <= Math.floor(y1 / CELL); row++) {
        const held = this.cells.get(keyOf(col, row));
        if (!held) continue;
        for (const at of held) {
          if (
            x0 < (boxes[at + 2] as number) &&
            x1 > (boxes[at] as number) &&
            y0 < (boxes[at + 3] as number) &&
            y1 > (boxes[at + 1] as number)
          ) {
            return false;
          }
        }
      }
    }
    return true;
  }
}

const keyOf = (col: number, row: number): number => (col + 4_096) * 8_192 + (row + 4_096);

export type Measure = (font: string, text: string) => number;

/** Text widths by font and text; cleared when it holds too much. */
export function measured(measure: Measure, most = 8_000): Measure {
  const fonts = new Map<string, Map<string, number>>();
  let count = 0;
  return (font, text) => {
    let held = fonts.get(font);
    if (!held) {
      held = new Map();
      fonts.set(font, held);
    }
    let width = held.get(text);
    if (width === undefined) {
      if (count >= most) {
        for (const one of fonts.values()) one.clear();
        count = 0;
      }
      width = measure(font, text);
      held.set(text, width);
      count += 1;
    }
    return width;
  };
}

/** Cut to a width, with an ellipsis. */
export function cut(text: string, font: string, most: number, measure: Measure): string {
  if (measure(font, text) <= most) return text;
  let low = 1;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(font, `${text.slice(0, middle)}…`) <= most) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low).trimEnd()}…`;
}
