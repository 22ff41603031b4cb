// A verification of the whole log under way: asked for, watched and ended from any board. A store of its own, so that
// it goes on while one looks elsewhere; its work is done in a worker.
import { useSyncExternalStore } from "react";
import { Problem } from "~/api/client";
import { type Break, Broken } from "./event";
import { believedKey } from "./key";
import { browserMemory, remember } from "./memory";
import { BadNote, type Checkpoint, NO_ED25519, readCheckpoint } from "./note";
import { base64 } from "./sha256";
import { http } from "./source";
import { BadTree } from "./tree";
import { grown, signedNow } from "./verify";
import type { Order, Report } from "./worker";

export interface Whole {
  phase: "idle" | "asking" | "running" | "paused" | "held" | "broken" | "cancelled" | "failed";
  verified: number;
  total: number;
  bytes: number;
  /** Of the run, without its pauses. */
  ms: number;
  sentence: string;
  broken: Break | null;
  /** What was found of the signature and the key before the events were read. */
  signature: string;
  /** False where the browser cannot check signatures: then nothing is called verified. */
  isSigned: boolean;
  root: string;
}

const NOTHING: Whole = {
  phase: "idle",
  verified: 0,
  total: 0,
  bytes: 0,
  ms: 0,
  sentence: "",
  broken: null,
  signature: "",
  isSigned: false,
  root: "",
};
let whole = NOTHING;
let worker: Worker | null = null;
let runs = 0;
let began = 0;
let before = 0;
const listeners = new Set<() => void>();

function tell(change: Partial<Whole>): void {
  whole = { ...whole, ...change };
  for (const listener of listeners) listener();
}

export function useWhole(): Whole {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => whole,
  );
}

const elapsed = () => before + performance.now() - began;

export async function verifyWhole(): Promise<void> {
  worker?.terminate();
  const run = ++runs;
  const set = (change: Partial<Whole>) => run === runs && tell(change);
  set({ ...NOTHING, phase: "asking" });
  let checkpoint: Checkpoint | undefined;
  try {
    const { tenant, keys } = await http.keys();
    // Before the checkpoint is asked for: what another tab sees meanwhile is newer, and no rollback.
    const known = browserMemory.recall(tenant);
    checkpoint = readCheckpoint(await http.checkpoint(tenant));
    set({ total: checkpoint.size, root: base64(checkpoint.root) });
    const signed = await signedNow(checkpoint, tenant, keys, known);
    const believed = await believedKey(http, tenant, keys, known);
    const older = known ? readCheckpoint(known.note) : null;
    if (older && older.size > checkpoint.size)
      throw new BadNote(
        `This browser has seen ${older.size.toLocaleString("en")} entries signed; now the log says it has ${checkpoint.size.toLocaleString("en")}. It was rolled back.`,
      );
    const how = {
      pinned: "the key this browser knows",
      first: "a key first seen now",
      followed: "a key proven to follow",
    };
    set({
      isSigned: signed !== null,
      signature: signed
        ? `Signed by ${how[believed.how]}: ${signed.id}.`
        : `Signature not checked: ${NO_ED25519}.`,
    });
    const heads = [...(older && older.size > 0 ? [older] : []), checkpoint].map(({ size, root }) => ({
      size,
      root,
    }));
    if (run !== runs) return; // cancelled, or begun anew, while it asked
    start(tenant, heads, () => {
      if (signed && checkpoint)
        remember(
          browserMemory,
          tenant,
          grown(known, believed.key, believed.how, checkpoint, known?.witnesses ?? {}),
        );
    });
  } catch (error) {
    if (error instanceof BadNote || error instanceof BadTree || error instanceof Broken) {
      const broken: Break = {
        sequence_number: checkpoint?.size ?? 0,
        what: "signature",
        sentence: error.message,
      };
      set({ phase: "broken", sentence: error.message, broken });
    } else if (error instanceof Problem) set({ phase: "failed", sentence: error.message });
    else set({ phase: "failed", sentence: "what the gateway answered could not be read" });
  }
}

function start(tenant: string, heads: { size: number; root: Uint8Array }[], held: () => void): void {
  worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  [began, before] = [performance.now(), 0];
  tell({ phase: "running" });
  worker.addEventListener("message", ({ data }: MessageEvent<Report>) => {
    if (data.kind === "progress") tell({ verified: data.verified, bytes: data.bytes, ms: elapsed() });
    if (data.kind === "paused") {
      tell({ phase: "paused", sentence: data.sentence, verified: data.verified, ms: elapsed() });
      before = whole.ms;
    }
    if (data.kind === "ended") {
      tell({
        phase: data.broken ? "broken" : "held",
        verified: data.verified,
        broken: data.broken,
        ms: elapsed(),
      });
      tell({ sentence: data.broken?.sentence ?? "" });
      if (!data.broken) held();
      worker?.terminate();
    }
  });
  worker.addEventListener("error", () => {
    worker?.terminate();
    tell({
      phase: "failed",
      sentence: "the check stopped in the middle; nothing was concluded",
      ms: elapsed(),
    });
  });
  worker.postMessage({ kind: "start", tenant, heads } satisfies Order);
}

/** After a pause (signed out, gateway away): from where it was, nothing is verified twice. */
export function goOn(): void {
  began = performance.now();
  tell({ phase: "running", sentence: "" });
  worker?.postMessage({ kind: "go on" } satisfies Order);
}

export function cancelWhole(): void {
  runs += 1;
  worker?.terminate();
  worker = null;
  tell({ phase: "cancelled", ms: whole.phase === "running" ? elapsed() : whole.ms });
}
