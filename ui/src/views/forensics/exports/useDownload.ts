// One download at a time: requested, running, done or interrupted; can be cancelled at any moment.
import { useCallback, useEffect, useRef, useState } from "react";
import { address, Problem } from "~/api/client";
import { type OnDisk, onDisk, sweep } from "./disk";
import { downloadTo, type Manifest, manifestOf, type Progress } from "./download";

export type DownloadState =
  | { state: "none" }
  | { state: "going"; progress: Progress }
  | { state: "done"; file: string; progress: Progress; manifest: Manifest | null; save: () => Promise<void> }
  | { state: "failed"; problem: Error };

export interface DownloadRequest {
  path: string;
  query?: Record<string, string | number | boolean | null | undefined>;
  params?: Record<string, string>;
  file: string;
  /** Its last line must be a manifest. */
  hasManifest: boolean;
}

const BROKEN =
  "The download was interrupted and discarded; the gateway may be unreachable. Nothing was changed there; download it again.";

async function problemOf(response: Response): Promise<Problem> {
  const refusal = (await response.json().catch(() => ({}))) as { reason?: string; detail?: string };
  return new Problem(
    response.status,
    refusal.reason ?? "failed",
    refusal.detail ?? `The gateway answered ${response.status}.`,
  );
}

export function useDownload() {
  const [taking, setTaking] = useState<DownloadState>({ state: "none" });
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const start = useCallback(async (wanted: DownloadRequest) => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    setTaking({ state: "going", progress: { bytes: 0, lines: 0 } });
    let disk: OnDisk | null = null;
    try {
      await sweep();
      const init: RequestInit = { credentials: "same-origin", signal: mine.signal };
      const response = await fetch(address(wanted.path, wanted), init);
      if (!response.ok || !response.body) throw await problemOf(response);
      disk = await onDisk(wanted.file);
      let shown = 0;
      const { progress, tail } = await downloadTo(
        response.body as ReadableStream<Uint8Array<ArrayBuffer>>,
        disk,
        (now) => {
          // A fast gateway sends hundreds of chunks a second; the eye needs a few updates.
          if (performance.now() - shown < 120) return;
          shown = performance.now();
          setTaking({ state: "going", progress: now });
        },
      );
      const manifest = wanted.hasManifest ? manifestOf(tail, progress.bytes) : null;
      await disk.save();
      const { save } = disk;
      setTaking({ state: "done", file: wanted.file, progress, manifest, save });
    } catch (error) {
      await disk?.abort().catch(() => undefined); // also if it ended but is incomplete
      if (mine.signal.aborted) return setTaking({ state: "none" });
      setTaking({ state: "failed", problem: error instanceof Problem ? error : new Error(BROKEN) });
    }
  }, []);
  const cancel = useCallback(() => stop.current?.abort(), []);
  return { taking, start, cancel };
}
