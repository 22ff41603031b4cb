// A running verification of the whole log: started, watched and cancelled from any board. A store of its own,
// so that it continues while other pages are open; its work is done in a worker.
import { useSyncExternalStore } from "react";
import { Problem } from "~/api/client";
import { browserMemory, remember } from "./browserMemory";
import { type Break, Broken } from "./event";
import { believedKey } from "./key";
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
  /** The result for the signature and the key, before the events were read. */
  signature: string;
  /** False if the browser cannot check signatures: then nothing is called verified. */
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

function update(change: Partial<Whole>): void {
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
  const set = (change: Partial<Whole>) => run === runs && update(change);
  set({ ...NOTHING, phase: "asking" });
  let checkpoint: Checkpoint | undefined;
  try {
    const { tenant, keys } = await http.keys();
    // Before the checkpoint is requested: what another tab sees in the meantime is newer, and no rollback.
    const known = browserMemory.recall(tenant);
    checkpoint = readCheckpoint(await http.checkpoint(tenant));
    set({ total: checkpoint.size, root: base64(checkpoint.root) });
    const signed = await signedNow(checkpoint, tenant, keys, known);
    const believed = await believedKey(http, tenant, keys, known);
    const older = known ? readCheckpoint(known.note) : null;
    if (older && older.size > checkpoint.size)
      throw new BadNote(
        `This browser has seen ${older.size.toLocaleString("en")} signed entries; now the log has ${checkpoint.size.toLocaleString("en")}. It was rolled back.`,
      );
    const how = {
      pinned: "the key this browser trusts",
      first: "a key first seen now (TOFU)",
      followed: "a successor key with proof",
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
    if (run !== runs) return; // cancelled, or restarted, meanwhile
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
    else set({ phase: "failed", sentence: "the gateway's response could not be parsed" });
  }
}

function start(tenant: string, heads: { size: number; root: Uint8Array }[], held: () => void): void {
  worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  [began, before] = [performance.now(), 0];
  update({ phase: "running" });
  worker.addEventListener("message", ({ data }: MessageEvent<Report>) => {
    if (data.kind === "progress") update({ verified: data.verified, bytes: data.bytes, ms: elapsed() });
    if (data.kind === "paused") {
      update({ phase: "paused", sentence: data.sentence, verified: data.verified, ms: elapsed() });
      before = whole.ms;
    }
    if (data.kind === "ended") {
      update({
        phase: data.broken ? "broken" : "held",
        verified: data.verified,
        broken: data.broken,
        ms: elapsed(),
      });
      update({ sentence: data.broken?.sentence ?? "" });
      if (!data.broken) held();
      worker?.terminate();
    }
  });
  worker.addEventListener("error", () => {
    worker?.terminate();
    update({
      phase: "failed",
      sentence: "the check was interrupted; no result",
      ms: elapsed(),
    });
  });
  worker.postMessage({ kind: "start", tenant, heads } satisfies Order);
}

/** After an interruption (signed out, gateway unreachable): resumes, nothing is verified twice. */
export function resumeRun(): void {
  began = performance.now();
  update({ phase: "running", sentence: "" });
  worker?.postMessage({ kind: "resume" } satisfies Order);
}

export function cancelWhole(): void {
  runs += 1;
  worker?.terminate();
  worker = null;
  update({ phase: "cancelled", ms: whole.phase === "running" ? elapsed() : whole.ms });
}
