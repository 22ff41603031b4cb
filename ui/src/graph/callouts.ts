// Incidents with their screen position, so that the host can place a real button next to the worst few. Pure
// over agents and a view. Agents a person has already stopped (paused, kill switch, evicted) are left out.
import { type Agent, gravity } from "./bodies";
import type { Alarm, Severity } from "./types";
import { type Size, toScreen, type View } from "./zoom";

export interface Callout {
  id: string;
  kind: string;
  severity: Severity;
  name: string;
  text: string;
  session_id: string | null;
  x: number;
  y: number;
  r: number;
}

const STOPPED = new Set(["paused", "kill", "evicted"]);
/** The text of these kinds names itself; the others get a prefix. */
const PREFIX: Record<string, string> = {
  loop: "loop",
  warning: "warning",
  schema_violation: "violation",
  silent: "silent",
};
const APART_X = 190;
const APART_Y = 54;

export const alarmText = (alarm: Alarm, reason?: string | null): string => {
  const text = alarm.text ?? reason ?? alarm.kind;
  const prefix = PREFIX[alarm.kind];
  return prefix && !text.toLowerCase().startsWith(prefix) ? `${prefix}: ${text}` : text;
};

export function callouts(agents: Iterable<Agent>, view: View, size: Size, most: number): Callout[] {
  const found: { agent: Agent; alarm: Alarm }[] = [];
  for (const agent of agents) {
    const { alarm } = agent;
    if (alarm && !STOPPED.has(alarm.kind) && !agent.dim && !agent.hidden) found.push({ agent, alarm });
  }
  found.sort(
    (a, b) =>
      gravity(a.alarm) - gravity(b.alarm) ||
      (a.alarm.since ?? "").localeCompare(b.alarm.since ?? "") ||
      (a.agent.id < b.agent.id ? -1 : 1),
  );
  const made: Callout[] = [];
  for (const { agent, alarm } of found) {
    if (made.length >= most) break;
    const { x, y } = toScreen(view, size, agent.x, agent.y);
    if (x < 8 || y < 8 || x > size.width - 8 || y > size.height - 8) continue;
    if (made.some((one) => Math.abs(one.x - x) < APART_X && Math.abs(one.y - y) < APART_Y)) continue;
    made.push({
      id: agent.id,
      kind: alarm.kind,
      severity: alarm.severity,
      name: agent.label,
      text: alarmText(alarm, agent.record.reason),
      session_id: alarm.session_id ?? null,
      x,
      y,
      r: agent.r * view.k,
    });
  }
  return made;
}
