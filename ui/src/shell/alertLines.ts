// Where an alert links to in this UI, and the tray's lines: equal alerts are one line with a count, the
// newest time, and whether any is open.
import type { AlertNotice } from "~/protocol/openapi";

export function whereOf(alert: Pick<AlertNotice, "agent_id" | "session_id" | "link" | "kind">): string {
  if (alert.kind === "kill_switch") return "/god-mode";
  if (alert.session_id) {
    const own = alert.link.startsWith(`/sessions/${alert.session_id}`);
    return own ? alert.link : `/sessions/${encodeURIComponent(alert.session_id)}`;
  }
  if (alert.agent_id) return `/fleet?peek=${encodeURIComponent(`agent:${alert.agent_id}`)}`;
  return alert.link.startsWith("/") && !alert.link.startsWith("//") ? alert.link : "/fleet";
}

export interface AlertLine {
  /** Stable while newer equal ones arrive: focus stays in its row. */
  name: string;
  alert: AlertNotice;
  times: number;
}

/** Newest first; a line is its newest alert, or the open one among equals. */
export function linesOf(alerts: readonly AlertNotice[]): AlertLine[] {
  const lines = new Map<string, AlertLine>();
  for (const alert of alerts) {
    const name = [alert.kind, alert.agent_id, alert.session_id, alert.text].join("\n");
    const line = lines.get(name);
    if (!line) lines.set(name, { name, alert, times: 1 });
    else {
      line.times += 1;
      if (alert.open && !line.alert.open) line.alert = { ...line.alert, open: true };
    }
  }
  return [...lines.values()];
}
