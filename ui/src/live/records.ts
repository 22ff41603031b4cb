// Records of one topic by kind and id. The gateway folds; here the latest of each is kept and nothing is
// merged: a snapshot replaces everything, a delta's item replaces its record if its version is higher,
// `removed` drops it. No React, no socket: frames in, changes out.

export interface LiveRecord {
  kind: string;
  id: string;
  version: number;
  removed?: boolean;
  [member: string]: unknown;
}

export interface LiveFrame {
  type: "snapshot" | "delta" | "event" | "resync";
  topic: string;
  seq: number;
  at?: string;
  items: LiveRecord[];
}

/** What one frame changed: records put, keys dropped, or everything. */
export interface Change {
  whole: boolean;
  put: LiveRecord[];
  dropped: { kind: string; id: string }[];
}

const NONE: ReadonlyMap<string, LiveRecord> = new Map();

export class Picture {
  private readonly kinds = new Map<string, Map<string, LiveRecord>>();
  private readonly counts = new Map<string, number>();
  seq: number | null = null;
  at: string | null = null;
  ready = false;

  /** The records of a kind; the map is live, its `generation` changes with it. */
  of(kind: string): ReadonlyMap<string, LiveRecord> {
    return this.kinds.get(kind) ?? NONE;
  }

  generation(kind: string): number {
    return this.counts.get(kind) ?? 0;
  }

  take(frame: LiveFrame): Change {
    const change: Change = { whole: frame.type === "snapshot", put: [], dropped: [] };
    if (frame.type === "snapshot") this.clear();
    if (frame.type === "resync") return change;
    this.seq = frame.seq;
    this.at = frame.at ?? this.at;
    this.ready = true;
    for (const item of frame.items) {
      const held = this.kinds.get(item.kind)?.get(item.id);
      if (held && held.version >= item.version) continue;
      if (item.removed) {
        if (this.kinds.get(item.kind)?.delete(item.id)) change.dropped.push({ kind: item.kind, id: item.id });
      } else {
        this.put(item);
        change.put.push(item);
      }
      this.touch(item.kind);
    }
    return change;
  }

  private put(item: LiveRecord): void {
    let kind = this.kinds.get(item.kind);
    if (!kind) {
      kind = new Map();
      this.kinds.set(item.kind, kind);
    }
    kind.set(item.id, item);
  }

  private clear(): void {
    for (const [kind, records] of this.kinds) {
      if (records.size > 0) this.touch(kind);
      records.clear();
    }
  }

  private touch(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
}
