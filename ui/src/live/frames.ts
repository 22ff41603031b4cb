// The one owner of the animation frame. Everything that must run once a frame registers here; code that runs
// only after a change requests the next frame. With nothing registered no frame is requested, so a quiet page
// costs nothing; a hidden page draws nothing (the browser withholds frames).

export type Painter = (nowMs: number) => void;

export interface Clock {
  request(run: (nowMs: number) => void): number;
  cancel(handle: number): void;
}

const browser: Clock = {
  request: (run) => requestAnimationFrame(run),
  cancel: (handle) => cancelAnimationFrame(handle),
};

export class Frames {
  private readonly steady = new Set<Painter>();
  private readonly once = new Set<Painter>();
  private handle: number | null = null;

  constructor(private readonly clock: Clock = browser) {}

  /** Run every frame until the returned function is called. */
  every(painter: Painter): () => void {
    this.steady.add(painter);
    this.ask();
    return () => {
      this.steady.delete(painter);
    };
  }

  /** Runs in the next frame, once however often it was requested. */
  next(painter: Painter): void {
    this.once.add(painter);
    this.ask();
  }

  private ask(): void {
    if (this.handle === null) this.handle = this.clock.request(this.run);
  }

  private readonly run = (nowMs: number): void => {
    this.handle = null;
    const due = [...this.once];
    this.once.clear();
    const broken: unknown[] = [];
    for (const painter of [...due, ...this.steady]) {
      try {
        painter(nowMs);
      } catch (error) {
        broken.push(error);
      }
    }
    // One broken painter must not freeze the others; its error is rethrown.
    if (this.steady.size > 0 || this.once.size > 0) this.ask();
    if (broken.length > 0) throw broken[0];
  };
}

export const frames = new Frames();
