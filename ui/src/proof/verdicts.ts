// What this page has verified, for every badge of the same event: a store of its own, in memory only, because
// "verified" means that this browser did it just now.
import { useSyncExternalStore } from "react";
import { browserMemory } from "./browserMemory";
import { http } from "./source";
import { type Proof, verifyEvent } from "./verify";

const MAX_VERDICTS = 500;
const proofs = new Map<string, Proof>();
const running = new Set<string>();
const listeners = new Set<() => void>();
let version = 0;

function changed(): void {
  version += 1;
  for (const listener of listeners) listener();
}

export async function verifyHere(audit_event_id: string): Promise<void> {
  if (running.has(audit_event_id)) return;
  running.add(audit_event_id);
  proofs.delete(audit_event_id);
  const keep = (proof: Proof) => {
    proofs.set(audit_event_id, proof);
    if (proofs.size > MAX_VERDICTS) proofs.delete(proofs.keys().next().value as string);
    changed();
  };
  changed();
  try {
    keep(await verifyEvent(audit_event_id, http, browserMemory, keep));
  } finally {
    running.delete(audit_event_id);
    changed();
  }
}

export function useProof(audit_event_id: string): { proof: Proof | undefined; busy: boolean } {
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => version,
  );
  return { proof: proofs.get(audit_event_id), busy: running.has(audit_event_id) };
}
