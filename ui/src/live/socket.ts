// One socket to /v1/live for the whole page. It subscribes to the union of followed topics, resumes each
// topic of records where it left off, reconnects with backoff, and reports its state. `after` is one number
// for a subscription: the lowest of the topics followed, which at worst repeats records already held.
import { type Change, type LiveFrame, Picture } from "./records";

export type Connection = "connecting" | "live" | "waiting" | "refused" | "closed";
export type PictureListener = (change: Change, picture: Picture) => void;
export type EventListener = (frame: LiveFrame) => void;

export interface Wire {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
}

export interface Surroundings {
  open(): Wire;
  later(run: () => void, ms: number): unknown;
  forget(handle: unknown): void;
  nowMs(): number;
}

const EVENTS = new Set(["messages", "events", "gateway:violations", "gateway:entropy_alerts"]);
const PAUSES_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];

interface Topic {
  picture: Picture;
  pictures: Set<PictureListener>;
  events: Set<EventListener>;
}

export class LiveSocket {
  private wire: Wire | null = null;
  private readonly topics = new Map<string, Topic>();
  private readonly watchers = new Set<(state: Connection) => void>();
  private tries = 0;
  private waiting: unknown = null;
  private asked = false;
  private opened = false;
  state: Connection = "closed";
  problem: string | null = null;
  /** When the last frame arrived, by this browser's clock: how old the data may be. */
  heardMs: number | null = null;

  constructor(private readonly around: Surroundings) {}

  /**
   * Follows a topic of records; the last listener to leave ends it. The picture is kept while it is followed.
   */
  follow(topic: string, listener: PictureListener): () => void {
    const held = this.topic(topic);
    // A new function for each: two callers who pass the same one are still two.
    const mine: PictureListener = (change, picture) => listener(change, picture);
    held.pictures.add(mine);
    return () => this.leave(topic, () => held.pictures.delete(mine));
  }

  /** Receives every frame of a topic of events from now on. */
  hear(topic: string, listener: EventListener): () => void {
    const held = this.topic(topic);
    const mine: EventListener = (frame) => listener(frame);
    held.events.add(mine);
    return () => this.leave(topic, () => held.events.delete(mine));
  }

  picture(topic: string): Picture | null {
    return this.topics.get(topic)?.picture ?? null;
  }

  watch(watcher: (state: Connection) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Reconnects at once, e.g. when the browser reports that it is online again. */
  retry(): void {
    if (this.wire || this.topics.size === 0) return;
    this.tries = 0;
    this.connect();
  }

  close(): void {
    this.topics.clear();
    this.end("closed");
  }

  private topic(name: string): Topic {
    let held = this.topics.get(name);
    if (!held) {
      held = { picture: new Picture(), pictures: new Set(), events: new Set() };
      this.topics.set(name, held);
      this.subscribeSoon();
    }
    if (!this.wire && this.waiting === null) this.connect();
    return held;
  }

  private leave(name: string, drop: () => void): void {
    drop();
    const held = this.topics.get(name);
    if (!held || held.pictures.size > 0 || held.events.size > 0) return;
    this.topics.delete(name);
    if (this.topics.size === 0) this.end("closed");
    else this.subscribeSoon();
  }

  private connect(): void {
    this.around.forget(this.waiting);
    this.waiting = null;
    this.opened = false;
    this.setState("connecting");
    const wire = this.around.open();
    this.wire = wire;
    wire.onopen = () => {
      this.opened = true;
      this.subscribe();
    };
    wire.onmessage = (event) => this.take(JSON.parse(String(event.data)) as LiveFrame & { problem?: string });
    wire.onclose = (event) => {
      if (this.wire !== wire) return;
      this.wire = null;
      this.lost(event.code, event.reason);
    };
  }

  private lost(code: number, reason: string): void {
    this.problem = reason || null;
    if (code === 4401 || code === 4403) {
      this.setState("refused");
      return;
    }
    const pause = PAUSES_MS[Math.min(this.tries, PAUSES_MS.length - 1)] ?? 8_000;
    this.tries += 1;
    this.setState("waiting");
    this.waiting = this.around.later(() => this.connect(), pause);
  }

  private end(state: Connection): void {
    this.around.forget(this.waiting);
    this.waiting = null;
    const wire = this.wire;
    this.wire = null;
    wire?.close();
    this.setState(state);
  }

  /** Several topics requested together are one subscription: a mounting view follows three at once. */
  private subscribeSoon(): void {
    if (this.asked || !this.opened) return;
    this.asked = true;
    queueMicrotask(() => {
      this.asked = false;
      this.subscribe();
    });
  }

  private subscribe(): void {
    if (!this.wire || !this.opened || this.topics.size === 0) return;
    const seqs = [...this.topics].filter(([name]) => !EVENTS.has(name)).map(([, held]) => held.picture.seq);
    const known = seqs.length > 0 && seqs.every((seq) => seq !== null) && this.topics.size === seqs.length;
    const frame: Record<string, unknown> = { op: "subscribe", topics: [...this.topics.keys()] };
    if (known) frame.after = Math.min(...(seqs as number[]));
    this.wire.send(JSON.stringify(frame));
  }

  private take(frame: LiveFrame & { problem?: string }): void {
    this.heardMs = this.around.nowMs();
    if (frame.problem) {
      this.problem = frame.problem;
      return;
    }
    const held = this.topics.get(frame.topic);
    if (!held) return;
    this.tries = 0;
    this.setState("live");
    if (frame.type === "event") {
      for (const listener of held.events) listener(frame);
      return;
    }
    const change = held.picture.take(frame);
    for (const listener of held.pictures) listener(change, held.picture);
  }

  private setState(state: Connection): void {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher(state);
  }
}
