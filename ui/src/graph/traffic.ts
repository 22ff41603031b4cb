// Moving dots: each stands for messages that were sent. The topic does not say which of a sender's live edges
// a message took, so dots are spread by the edges' rates. A bounded pool in flat arrays: when it is full,
// more traffic shows no more dots. Edges without traffic cost nothing, so a quiet mesh animates nothing.
import type { Link } from "./edges";
import type { News } from "./model";
import type { EdgeRecord } from "./types";

export const MAX_DOTS = 420;
const LASTS_MS = 1_100;
/** Frames come ten times a second; the dots of one are spread over the time until the next few. */
const STREWN_MS = 320;
const MAX_DOTS_PER_EDGE = 3;
const GOLDEN = 0.618033988749895;

export class Traffic {
  count = 0;
  readonly ids: (string | null)[] = new Array<string | null>(MAX_DOTS).fill(null);
  readonly links: (Link | null)[] = new Array<Link | null>(MAX_DOTS).fill(null);
  readonly begun = new Float64Array(MAX_DOTS);
  private turn = 0;

  take(
    news: Pick<News, "sent" | "rose">,
    busyFrom: (agentId: string) => readonly EdgeRecord[],
    linkOf: ReadonlyMap<string, Link>,
    nowMs: number,
  ): void {
    for (const { id, count } of news.sent) {
      const edges = busyFrom(id);
      if (edges.length === 0) continue;
      for (let n = Math.min(count, MAX_DOTS_PER_EDGE); n > 0; n--) this.add(this.pick(edges), linkOf, nowMs);
    }
    for (const id of news.rose) this.add(id, linkOf, nowMs);
  }

  /** The links were rebuilt: dots continue where their edges are drawn now. */
  relink(linkOf: ReadonlyMap<string, Link>): void {
    for (let at = 0; at < this.count; at++) this.links[at] = linkOf.get(this.ids[at] as string) ?? null;
  }

  /** Removes dots that have arrived; true while some are moving. */
  step(nowMs: number): boolean {
    for (let at = 0; at < this.count; ) {
      if (nowMs - (this.begun[at] as number) < LASTS_MS && this.links[at]) {
        at += 1;
        continue;
      }
      this.count -= 1;
      const last = this.count;
      this.ids[at] = this.ids[last] ?? null;
      this.links[at] = this.links[last] ?? null;
      this.begun[at] = this.begun[last] as number;
      this.ids[last] = null;
      this.links[last] = null;
    }
    return this.count > 0;
  }

  /** How far along its way a dot is; below 0 it has not started. */
  along(at: number, nowMs: number): number {
    return (nowMs - (this.begun[at] as number)) / LASTS_MS;
  }

  clear(): void {
    this.ids.fill(null);
    this.links.fill(null);
    this.count = 0;
  }

  private add(id: string, linkOf: ReadonlyMap<string, Link>, nowMs: number): void {
    const link = linkOf.get(id);
    if (!link || this.count >= MAX_DOTS) return;
    const at = this.count;
    this.ids[at] = id;
    this.links[at] = link;
    this.turn = (this.turn + GOLDEN) % 1;
    this.begun[at] = nowMs + this.turn * STREWN_MS;
    this.count += 1;
  }

  private pick(edges: readonly EdgeRecord[]): string {
    let all = 0;
    for (const edge of edges) all += edge.rate_per_s;
    this.turn = (this.turn + GOLDEN) % 1;
    let left = this.turn * all;
    for (const edge of edges) {
      left -= edge.rate_per_s;
      if (left <= 0) return edge.id;
    }
    return (edges[edges.length - 1] as EdgeRecord).id;
  }
}
