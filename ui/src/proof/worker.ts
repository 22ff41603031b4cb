// Web worker that verifies a whole log: fetching, hashing and comparing happen here, so the page stays
// responsive. Pages are prefetched, so that the gateway reads while this hashes. Errors pause it; nothing
// verified is lost.
import { type Signed, WholeCheck } from "./wholeLog";

export type Order = { kind: "start"; tenant: string; heads: Signed[] } | { kind: "resume" };

export type Report =
  | { kind: "progress"; verified: number; bytes: number; busyMs: number }
  | { kind: "paused"; verified: number; sentence: string; code: number }
  | { kind: "ended"; verified: number; broken: WholeCheck["broken"] };

const LINES = 5_000;
const AHEAD = 3;

let check: WholeCheck | null = null;
let bytesRead = 0;
let busyMs = 0;

const say = (report: Report) => postMessage(report);

class Refused extends Error {
  constructor(
    readonly code: number,
    sentence: string,
  ) {
    super(sentence);
  }
}

async function page(after: number): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(`/v1/audit/records?after=${after}&limit=${LINES}`, { credentials: "same-origin" });
    // The connection may also break in the middle of a response.
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch {
    throw new Refused(0, "the gateway cannot be reached");
  }
  const refusal = (await response.json().catch(() => null)) as { detail?: string } | null;
  throw new Refused(response.status, refusal?.detail ?? `the gateway answered ${response.status}`);
}

/**
 * Hashing yields between portions, or a response that arrived in the meantime is read from the socket too
 * late.
 */
async function run(found: WholeCheck): Promise<void> {
  const pages: Promise<Uint8Array>[] = [];
  let next = found.verified;
  try {
    while (!found.isDone) {
      while (pages.length < AHEAD && next < found.size) {
        const asked = page(next);
        asked.catch(() => {}); // handled when it is awaited
        pages.push(asked);
        next += LINES;
      }
      const bytes = await (pages.shift() ?? Promise.resolve(new Uint8Array()));
      const began = performance.now();
      const before = found.verified;
      found.feed(bytes);
      bytesRead += bytes.length;
      busyMs += performance.now() - began;
      if (found.verified === before) found.end();
      say({ kind: "progress", verified: found.verified, bytes: bytesRead, busyMs });
    }
    say({ kind: "ended", verified: found.verified, broken: found.broken });
  } catch (error) {
    if (!(error instanceof Refused)) return reportError(error); // reported to the page, which stops waiting
    say({ kind: "paused", verified: found.verified, sentence: error.message, code: error.code });
  }
}

addEventListener("message", ({ data }: MessageEvent<Order>) => {
  if (data.kind === "start") {
    [bytesRead, busyMs] = [0, 0];
    check = new WholeCheck(data.tenant, data.heads);
  }
  if (check) void run(check);
});
