// Verifies a whole log beside the page: fetching, hashing and comparing happen here, the page stays free. Pages are
// asked for ahead, so that the gateway reads while this hashes. Trouble on the way pauses; nothing verified is lost.
import { type Signed, WholeCheck } from "./whole";

export type Order = { kind: "start"; tenant: string; heads: Signed[] } | { kind: "go on" };

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
    // It may go away in the middle of an answer, too.
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch {
    throw new Refused(0, "the gateway cannot be reached");
  }
  const told = (await response.json().catch(() => null)) as { detail?: string } | null;
  throw new Refused(response.status, told?.detail ?? `the gateway answered ${response.status}`);
}

/** Hashing gives way between portions, or an answer that came meanwhile is taken from the socket too late. */
async function run(found: WholeCheck): Promise<void> {
  const pages: Promise<Uint8Array>[] = [];
  let next = found.verified;
  try {
    while (!found.isDone) {
      while (pages.length < AHEAD && next < found.size) {
        const asked = page(next);
        asked.catch(() => {}); // told when its turn comes
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
    if (!(error instanceof Refused)) return reportError(error); // the page is told, and stops waiting
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
