// elkjs in a web worker: a big graph takes a second, and the page must not block. One worker for the page;
// while it works only the last request counts. Without a worker there is `grown` alone.
import ELK, { type ElkNode as ElkRoot } from "elkjs/lib/elk-api";
import type { Drawn } from "./collapse";
import { elkOf, grown, type Spot, spotsOf } from "./layout";

const PATIENCE_MS = 20_000;
/** Above this number of cards elkjs takes seconds: it runs only on request. */
const BIG = 400;
let elk: InstanceType<typeof ELK> | null = null;

function engine(): InstanceType<typeof ELK> {
  elk ??= new ELK({
    workerFactory: () => new Worker(new URL("elkjs/lib/elk-worker.min.js", import.meta.url)),
  });
  return elk;
}

/** The worker is big: started with the page, it is ready when the first steps arrive. */
export function warm(): void {
  if (!elk)
    void engine()
      .layout({ id: "warm", children: [] })
      .catch(() => undefined);
}

export async function layOut(drawn: Drawn, byHand = false): Promise<Map<string, Spot>> {
  if (drawn.items.length <= 1 || (drawn.items.length > BIG && !byHand)) return grown(new Map(), drawn);
  try {
    const laid = await Promise.race([
      engine().layout(elkOf(drawn) as ElkRoot),
      new Promise<never>((_, fail) => setTimeout(() => fail(new Error("layout took too long")), PATIENCE_MS)),
    ]);
    return spotsOf(laid as Parameters<typeof spotsOf>[0]);
  } catch {
    // A worker that cannot start or respond must not cost the picture: rows by cause, columns in order of
    // arrival.
    elk?.terminateWorker();
    elk = null;
    return grown(new Map(), drawn);
  }
}
