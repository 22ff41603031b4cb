// One file at a time: asked for, on its way, done or broken off; can be cancelled at any moment.
import { useCallback, useEffect, useRef, useState } from "react";
import { address, Problem } from "~/api/client";
import { type OnDisk, onDisk, sweep } from "./disk";
import { type Manifest, manifestOf, type Progress, take } from "./taking";

export type Taking =
  | { state: "none" }
  | { state: "going"; progress: Progress }
  | { state: "done"; file: string; progress: Progress; manifest: Manifest | null; save: () => Promise<void> }
  | { state: "failed"; problem: Error };

export interface Wanted {
  path: string;
  query?: Record<string, string | number | boolean | null | undefined>;
  params?: Record<string, string>;
  file: string;
  /** Its last line must be a manifest. */
  hasManifest: boolean;
}

const BROKEN =
  "The file broke off on its way and was thrown away; the gateway may have gone. Nothing was changed there; take it again.";

async function problemOf(response: Response): Promise<Problem> {
  const told = (await response.json().catch(() => ({}))) as { reason?: string; detail?: string };
  return new Problem(
    response.status,
    told.reason ?? "failed",
    told.detail ?? `The gateway answered ${response.status}.`,
  );
}

export function useTaking() {
  const [taking, setTaking] = useState<Taking>({ state: "none" });
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const start = useCallback(async (wanted: Wanted) => {
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
      const { progress, tail } = await take(
        response.body as ReadableStream<Uint8Array<ArrayBuffer>>,
        disk,
        (now) => {
          // A fast gateway sends hundreds of pieces a second; the eye needs a few.
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
      await disk?.abort().catch(() => undefined); // also what came to its end and is not whole
      if (mine.signal.aborted) return setTaking({ state: "none" });
      setTaking({ state: "failed", problem: error instanceof Problem ? error : new Error(BROKEN) });
    }
  }, []);
  const cancel = useCallback(() => stop.current?.abort(), []);
  return { taking, start, cancel };
}
