// Open loop alerts of both detectors: the gateway's list, updated from the live topic; and their texts. Pure.
import type { AlertItem } from "~/protocol/openapi";
import { span } from "~/widgets/format";
import { type LoopText, loopText } from "~/widgets/loopText";

/** An item of `gateway:entropy_alerts`: an alert, or its end. */
export type AlarmEvent = Omit<AlertItem, "event_type" | "repeated_pattern"> & {
  event_type: AlertItem["event_type"] | "entropy_recovered" | "loop_ended";
  repeated_pattern?: AlertItem["repeated_pattern"];
  severity?: string;
};

const ENDS: Record<string, AlertItem["event_type"]> = {
  entropy_recovered: "entropy_alert",
  loop_ended: "loop_detected",
};

/** The ratio detector has one alert per session, the other one per agent. */
export function alarmId(alarm: Pick<AlertItem, "event_type" | "session_id" | "agent_id">): string {
  const agentPart = alarm.event_type === "loop_detected" ? (alarm.agent_id ?? "") : "";
  return `${alarm.event_type} ${alarm.session_id} ${agentPart}`;
}

/** The list with these events applied, newest first. Events older than the listed alert are ignored. */
export function withEvents(listed: readonly AlertItem[], events: readonly AlarmEvent[]): AlertItem[] {
  const open = new Map(listed.map((alarm) => [alarmId(alarm), alarm]));
  for (const event of events) {
    const ended = ENDS[event.event_type];
    const id = alarmId({ ...event, event_type: ended ?? (event.event_type as AlertItem["event_type"]) });
    const held = open.get(id);
    if (held && held.sequence_number > event.sequence_number) continue;
    if (ended) open.delete(id);
    else open.set(id, event as AlertItem);
  }
  return [...open.values()].sort((a, b) => b.sequence_number - a.sequence_number);
}

export const DETECTORS: Record<string, { name: string; means: string }> = {
  ratio: { name: "ratio", means: "the session's last five steps hardly differ" },
  seed: { name: "ratio", means: "the session's last five steps hardly differ" },
  fingerprint: {
    name: "fingerprint",
    means: "one agent repeats the same call, or the same few calls in turn",
  },
  similarity: { name: "similarity", means: "one agent repeats reworded calls with no new result" },
  monologue: { name: "monologue", means: "one agent repeats its thoughts without a call" },
};

/** The ratio detector compares intents of the whole session, whatever name its event has. */
export function detectorOf(alarm: Pick<AlertItem, "event_type" | "detector">): {
  name: string;
  means: string;
} {
  if (alarm.event_type === "entropy_alert") return DETECTORS.ratio as { name: string; means: string };
  return DETECTORS[alarm.detector] ?? { name: alarm.detector, means: "one agent repeats itself" };
}

/** "loop: same failing `serp_search` 5 times in 40 s". `lastedMs` is null while unknown. */
export function sentence(alarm: AlertItem, lastedMs: number | null): LoopText {
  return loopText(alarm, lastedMs === null ? "" : ` in ${lastedMs < 1_000 ? "under 1 s" : span(lastedMs)}`);
}

export interface Step {
  sequence_number: number;
  step_id: string;
  at: string | null;
  tool: string | null;
}

/**
 * The duration of the repeated steps, from an agent's messages (any order): the last `occurrence_count` with
 * the pattern's tool up to the one that raised the alert. Null if steps are missing.
 */
export function durationOf(alarm: AlertItem, steps: readonly Step[]): number | null {
  const tool = alarm.repeated_pattern.tool_call;
  const until = steps
    .filter((step) => step.sequence_number <= alarm.sequence_number && (tool === null || step.tool === tool))
    .sort((a, b) => b.sequence_number - a.sequence_number)
    .slice(0, Math.max(alarm.occurrence_count, 2));
  const [last, first] = [until[0]?.at, until.at(-1)?.at];
  if (until.length < Math.max(alarm.occurrence_count, 2) || !last || !first) return null;
  return Date.parse(last) - Date.parse(first);
}
