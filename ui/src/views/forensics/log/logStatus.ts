// State of the log and of its witnesses as text; progress of a verification. Pure.
import type { LogAnswer, PeerItem } from "~/protocol/openapi";

const n = (count: number) => count.toLocaleString("en");

export function logStatus(log: Pick<LogAnswer, "state" | "detail" | "unsigned" | "unsigned_age_s">) {
  if (log.state === "refused")
    return {
      tone: "alert",
      mark: "×",
      word: "not signed",
      sentence: `No checkpoint is created: ${log.detail ?? "the sealer refuses"}. Events are still recorded and chained.`,
    };
  if (log.state === "behind" && log.unsigned_age_s > 5)
    return {
      tone: "blocked",
      mark: "!",
      word: "late",
      sentence: `${n(log.unsigned)} newer events have been waiting for a signature for ${Math.round(log.unsigned_age_s)} s.`,
    };
  if (log.state === "behind")
    return {
      tone: "good",
      mark: "✓",
      word: "signed",
      sentence: `${n(log.unsigned)} newer are being sealed.`,
    };
  return { tone: "good", mark: "✓", word: "signed", sentence: "Every event is under the newest checkpoint." };
}

/** How far behind a witness is, and its last response. */
export function witnessStatus(
  peer: Pick<PeerItem, "asked" | "cosigned_size" | "fork" | "url">,
  size: number,
) {
  const behind = peer.cosigned_size === null ? null : Math.max(0, size - peer.cosigned_size);
  const far =
    behind === null
      ? "has cosigned nothing yet"
      : behind === 0
        ? "up to date"
        : `${n(behind)} entries behind`;
  if (peer.fork) return { tone: "alert", mark: "×", word: `saw a ${peer.fork.kind}`, far };
  const { state } = peer.asked;
  if (state === "unreachable") return { tone: "blocked", mark: "!", word: "unreachable", far };
  if (state === "refused") return { tone: "alert", mark: "×", word: "refuses", far };
  if (state === "ahead") return { tone: "alert", mark: "×", word: "is ahead of this log", far };
  if (state === "never")
    return { tone: "idle", mark: "·", word: peer.url ? "not contacted yet" : "not contacted: no URL", far };
  return { tone: "good", mark: "✓", word: "cosigns", far };
}

export interface Pace {
  percent: number;
  rate: string;
  left: string;
}

export function pace(verified: number, total: number, ms: number): Pace {
  const perSecond = ms > 0 ? (verified / ms) * 1000 : 0;
  const left = perSecond > 0 ? (total - verified) / perSecond : 0;
  return {
    percent: total > 0 ? Math.floor((verified / total) * 100) : 0,
    rate: `${n(Math.round(perSecond))} events/s`,
    left: verified >= total ? "" : left < 1 ? "less than 1 s left" : `about ${n(Math.ceil(left))} s left`,
  };
}
