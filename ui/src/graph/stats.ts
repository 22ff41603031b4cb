// How long drawing takes: the last frames, for the benchmark and for debugging.

const KEPT = 1_200;

export interface Stats {
  frames: number;
  /** Frames in which a cached layer was redrawn. */
  drawn: number;
  medianMs: number;
  p95Ms: number;
  maxMs: number;
}

export class Stopwatch {
  private readonly took = new Float64Array(KEPT);
  private frames = 0;
  private drawn = 0;

  add(ms: number, drew: boolean): void {
    this.took[this.frames % KEPT] = ms;
    this.frames += 1;
    if (drew) this.drawn += 1;
  }

  reset(): void {
    this.frames = 0;
    this.drawn = 0;
  }

  read(): Stats {
    const kept = this.took.slice(0, Math.min(this.frames, KEPT)).sort();
    const at = (share: number) => kept[Math.min(kept.length - 1, Math.floor(kept.length * share))] ?? 0;
    return { frames: this.frames, drawn: this.drawn, medianMs: at(0.5), p95Ms: at(0.95), maxMs: at(1) };
  }
}
