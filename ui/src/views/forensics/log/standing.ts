// How a log stands, in words; how a run goes, in figures. Pure.
import type { LogAnswer, PeerItem } from "~/protocol/openapi";

const n = (count: number) => count.toLocaleString("en");

export function standing(log: Pick<LogAnswer, "state" | "detail" | "unsigned" | "unsigned_age_s">) {
  if (log.state === "refused")
    return {
      tone: "alert",
      mark: "×",
      word: "not signed",
      sentence: `No checkpoint is made: ${log.detail ?? "the sealer refuses"}. Events are still recorded and chained.`,
    };
  if (log.state === "behind" && log.unsigned_age_s > 5)
    return {
      tone: "blocked",
      mark: "!",
      word: "late",
      sentence: `${n(log.unsigned)} newer events wait for a signature since ${Math.round(log.unsigned_age_s)} s.`,
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

/** How far a witness is, and what it last answered. */
export function witnessed(peer: Pick<PeerItem, "asked" | "cosigned_size" | "fork" | "url">, size: number) {
  const behind = peer.cosigned_size === null ? null : Math.max(0, size - peer.cosigned_size);
  const far =
    behind === null
      ? "has cosigned nothing yet"
      : behind === 0
        ? "up to date"
        : `${n(behind)} entries behind`;
  if (peer.fork) return { tone: "alert", mark: "×", word: `saw a ${peer.fork.kind}`, far };
  const { state } = peer.asked;
  if (state === "unreachable") return { tone: "blocked", mark: "!", word: "cannot be reached", far };
  if (state === "refused") return { tone: "alert", mark: "×", word: "refuses", far };
  if (state === "ahead") return { tone: "alert", mark: "×", word: "has seen more than we have", far };
  if (state === "never")
    return { tone: "idle", mark: "·", word: peer.url ? "not asked yet" : "not asked: no address", far };
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
