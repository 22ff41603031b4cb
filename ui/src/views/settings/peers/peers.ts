// How a peer stands, in a mark and a word; and what is asked for to add one. Pure.
import type { NewPeerBody, PeerItem } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";

export const NEW: Values = { name: "", vkey: "", url: "", log_url: "" };
const ASKED: Record<PeerItem["asked"]["state"], { tone: string; word: string }> = {
  never: { tone: "idle", word: "· not asked" },
  cosigned: { tone: "good", word: "✓ cosigned" },
  ahead: { tone: "alert", word: "! ahead of us" },
  refused: { tone: "alert", word: "× refused" },
  unreachable: { tone: "blocked", word: "‖ unreachable" },
};

export function standingOf(peer: PeerItem): { tone: string; word: string } {
  if (peer.fork) return { tone: "alert", word: `! ${peer.fork.kind}` };
  return ASKED[peer.asked.state];
}

export const FORKS = {
  fork: "two histories under one signature: the same size with another root",
  rollback: "a shorter history than one that was cosigned",
  inconsistent: "a history that does not go on from the one that was cosigned",
} as const;

export function readPeer(
  values: Values,
): { body: NewPeerBody; faults: null } | { body: null; faults: Faults } {
  const text = (name: string) => String(values[name] ?? "").trim();
  const faults: Faults = {};
  if (text("name") === "") faults.name = "Give it a name.";
  if (text("vkey") === "") faults.vkey = "Paste the key they gave you: name+hash+key.";
  if (Object.keys(faults).length > 0) return { body: null, faults };
  return {
    body: {
      name: text("name"),
      vkey: text("vkey"),
      url: text("url") || null,
      log_url: text("log_url") || null,
    },
    faults: null,
  };
}
