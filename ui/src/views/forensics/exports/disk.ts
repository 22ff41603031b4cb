// Where a download is written while it arrives: the origin's private file system, then out as a download.
// Where there is none (an insecure origin) the caller uses a plain link and the browser's own progress.
import type { Sink } from "./download";

const FOLDER = "exports";

export function hasDisk(): boolean {
  return (
    typeof navigator.storage?.getDirectory === "function" &&
    "createWritable" in (globalThis.FileSystemFileHandle?.prototype ?? {})
  );
}

/** Leftovers of files already saved, or interrupted by a closed page. */
export async function sweep(): Promise<void> {
  if (!hasDisk()) return;
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(FOLDER, { recursive: true }).catch(() => undefined);
}

export interface OnDisk extends Sink {
  /** Saves the whole file as a browser download. */
  save(): Promise<void>;
}

export async function onDisk(name: string): Promise<OnDisk> {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(FOLDER, { create: true });
  const handle = await folder.getFileHandle(name, { create: true });
  const file = await handle.createWritable();
  return {
    write: (piece) => file.write(piece),
    close: () => file.close(),
    abort: async () => {
      await file.abort().catch(() => undefined); // it may be closed already
      await folder.removeEntry(name).catch(() => undefined);
    },
    save: async () => {
      const address = URL.createObjectURL(await handle.getFile());
      const link = document.createElement("a");
      link.href = address;
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    },
  };
}
