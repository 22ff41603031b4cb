// The page's connection state: live, reconnecting with the age of the data, offline, signed out.
import { useSyncExternalStore } from "react";
import { live } from "~/live/connection";
import type { Connection } from "~/live/socket";
import { useConnection } from "~/live/useLive";
import { span } from "~/widgets/format";
import { useNow } from "~/widgets/now";
import classes from "./ConnectionStatus.module.css";

export interface StatusText {
  word: string;
  tone: "good" | "blocked" | "alert";
}

export function saidOf(state: Connection, online: boolean, ageMs: number | null): StatusText {
  const age = ageMs === null ? "" : `, data of ${span(ageMs)} ago`;
  if (state === "refused") return { word: "signed out", tone: "alert" };
  if (!online) return { word: `offline${age}`, tone: "alert" };
  if (state === "live") return { word: "live", tone: "good" };
  if (ageMs === null) return { word: "connecting", tone: "blocked" };
  return { word: `reconnecting${age}`, tone: "blocked" };
}

function hearOnline(changed: () => void): () => void {
  window.addEventListener("online", changed);
  window.addEventListener("offline", changed);
  return () => {
    window.removeEventListener("online", changed);
    window.removeEventListener("offline", changed);
  };
}

export function ConnectionStatus() {
  const state = useConnection();
  const online = useSyncExternalStore(hearOnline, () => navigator.onLine);
  const now = useNow();
  const { word, tone } = saidOf(state, online, live.heardMs === null ? null : now - live.heardMs);
  return (
    <span className={classes.standing} data-tone={tone} role="status" title={live.problem ?? undefined}>
      <span className={classes.dot} aria-hidden />
      <span className={classes.word}>{word}</span>
    </span>
  );
}
