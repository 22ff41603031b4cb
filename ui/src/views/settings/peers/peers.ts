// Status of a peer as mark and word; and the fields to add one. Pure.
import type { NewPeerBody, PeerItem } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";

export const NEW: Values = { name: "", vkey: "", url: "", log_url: "" };
const ASKED: Record<PeerItem["asked"]["state"], { tone: string; word: string }> = {
  never: { tone: "idle", word: "· not contacted" },
  cosigned: { tone: "good", word: "✓ cosigned" },
  ahead: { tone: "alert", word: "! ahead" },
  refused: { tone: "alert", word: "× refused" },
  unreachable: { tone: "blocked", word: "‖ unreachable" },
};

export function standingOf(peer: PeerItem): { tone: string; word: string } {
  if (peer.fork) return { tone: "alert", word: `! ${peer.fork.kind}` };
  return ASKED[peer.asked.state];
}

export const FORKS = {
  fork: "two histories under one signature: the same size with a different root",
  rollback: "a shorter history than the cosigned one",
  inconsistent: "a history that does not extend the cosigned one",
} as const;

export function readPeer(
  values: Values,
): { body: NewPeerBody; faults: null } | { body: null; faults: Faults } {
  const text = (name: string) => String(values[name] ?? "").trim();
  const faults: Faults = {};
  if (text("name") === "") faults.name = "Enter a name.";
  if (text("vkey") === "") faults.vkey = "Paste their key: name+hash+key.";
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
