// A streamed download: each chunk goes to a sink as it arrives, so that only one chunk is held, and lines are
// counted. The last line of an export is its manifest. No React, no DOM.
import { Problem } from "~/api/client";

export interface Sink {
  write(piece: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

export interface Progress {
  bytes: number;
  lines: number;
}

export interface Manifest {
  tenant_id: string;
  from_sequence: number;
  to_sequence: number;
  events: number;
  messages: number;
  payloads: boolean;
  shredded: number;
  file: string;
  bytes: number;
  sha256: string;
  after_hash: string;
  first_hash: string | null;
  last_hash: string | null;
  created_at: string;
  checkpoint: string | null;
  vkeys: string[];
}

const [NEWLINE, TAIL] = [10, 1 << 18];

/** Reads to the end. An interruption leaves nothing behind in the sink. */
export async function downloadTo(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  sink: Sink,
  onProgress: (progress: Progress) => void,
): Promise<{ progress: Progress; tail: Uint8Array }> {
  const reader = body.getReader();
  const progress: Progress = { bytes: 0, lines: 0 };
  let tail: Uint8Array = new Uint8Array(0);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await sink.write(value);
      progress.bytes += value.length;
      for (let at = value.indexOf(NEWLINE); at >= 0; at = value.indexOf(NEWLINE, at + 1)) progress.lines += 1;
      tail = kept(tail, value);
      onProgress({ ...progress });
    }
    await sink.close();
  } catch (error) {
    await reader.cancel().catch(() => undefined);
    await sink.abort().catch(() => undefined);
    throw error;
  }
  return { progress, tail };
}

function kept(before: Uint8Array, piece: Uint8Array): Uint8Array {
  if (piece.length >= TAIL) return piece.slice(-TAIL);
  const joined = new Uint8Array(Math.min(TAIL, before.length + piece.length));
  const old = before.subarray(before.length - (joined.length - piece.length));
  joined.set(old);
  joined.set(piece, old.length);
  return joined;
}

/** The manifest from the last line; without it, or with another size before it, the file was truncated. */
export function manifestOf(tail: Uint8Array, bytes: number): Manifest {
  const last = tail.subarray(tail.lastIndexOf(NEWLINE, -2) + 1);
  const line = new TextDecoder().decode(last);
  if (line.startsWith('{"manifest":') && line.endsWith("\n")) {
    try {
      const { manifest } = JSON.parse(line) as { manifest: Manifest };
      if (manifest.bytes === bytes - last.length) return manifest;
    } catch {
      // reported below: invalid JSON is not a manifest
    }
  }
  throw new Problem(
    0,
    "cut_short",
    "The export does not end with a matching manifest, so it is incomplete and was discarded. Nothing in the gateway was changed; download it again.",
  );
}

/** "12.9 MB": about how large a file is. */
export function sized(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const [value, unit] =
    bytes < 1e6 ? [bytes / 1e3, "kB"] : bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${value >= 100 ? Math.round(value) : value.toFixed(1)} ${unit}`;
}
