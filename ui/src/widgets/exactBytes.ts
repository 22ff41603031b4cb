// The exact bytes of a message and whether they match a digest, computed here and not trusted: an approval
// covers what was read. Rewritten content takes precedence if there is any.
import { useQuery } from "@tanstack/react-query";
import { bytes, get, Problem } from "~/api/client";
import { pretty } from "./Json";

export interface Exact {
  text: string;
  pretty: string;
  size: number;
  /** sha256:… of these bytes; null if the browser cannot compute it (no secure origin). */
  digest: string | null;
  /** A person's content in place of the agent's. */
  rewritten: boolean;
}

export async function sha256(content: Uint8Array<ArrayBuffer>): Promise<string | null> {
  if (!globalThis.crypto?.subtle) return null;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return `sha256:${[...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

async function exactOf(content: Uint8Array<ArrayBuffer>, rewritten: boolean): Promise<Exact> {
  const text = new TextDecoder().decode(content);
  return { text, pretty: pretty(text), size: content.length, digest: await sha256(content), rewritten };
}

async function load(message_id: string, session_id: string | null, digest: string | null): Promise<Exact> {
  const raw = await bytes("/v1/messages/{message_id}", { params: { message_id }, query: { raw: true } });
  const sent = await exactOf(raw, false);
  if (digest === null || sent.digest === digest || !session_id) return sent;
  // Also if nothing can be hashed here (no secure origin): the record says which content the digest covers.
  const { items } = await get("/v1/sessions/{session_id}/interventions", { params: { session_id } });
  const put = items.findLast((one) => one.after_hash === digest && one.message_id === message_id);
  if (put) {
    const { intervention_id } = put;
    const content = await bytes("/v1/interventions/{intervention_id}/content", {
      params: { intervention_id },
    });
    return exactOf(content, true);
  }
  if (sent.digest === null) return sent;
  // Never show bytes other than those to be approved.
  throw new Problem(409, "changed", "The message changed while it was open. Nothing was sent; try again.");
}

/** The bytes that `digest` covers: the agent's own, or the rewritten ones. */
export function useExact(message_id: string | null, session_id: string | null, digest: string | null) {
  return useQuery<Exact, Problem>({
    queryKey: ["exact", message_id, digest],
    queryFn: () => load(message_id as string, session_id, digest),
    enabled: message_id !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
