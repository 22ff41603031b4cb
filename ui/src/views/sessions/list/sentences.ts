// Open alarms of both detectors: what the gateway lists, moved on by what the live topic tells; and how an
// alarm reads. Pure.
import type { AlertItem } from "~/protocol/openapi";
import { span } from "~/widgets/words";

/** An item of `gateway:entropy_alerts`: an alarm raised, or the end of one. */
export type AlarmEvent = Omit<AlertItem, "event_type" | "repeated_pattern"> & {
  event_type: AlertItem["event_type"] | "entropy_recovered" | "loop_ended";
  repeated_pattern?: AlertItem["repeated_pattern"];
  severity?: string;
};

const ENDS: Record<string, AlertItem["event_type"]> = {
  entropy_recovered: "entropy_alert",
  loop_ended: "loop_detected",
};

/** The session's ratio has one alarm, the second detector one for each agent. */
export function alarmId(alarm: Pick<AlertItem, "event_type" | "session_id" | "agent_id">): string {
  const whose = alarm.event_type === "loop_detected" ? (alarm.agent_id ?? "") : "";
  return `${alarm.event_type} ${alarm.session_id} ${whose}`;
}

/** The list with these events, newest first. An event older than what is listed changes nothing. */
export function movedOn(listed: readonly AlertItem[], events: readonly AlarmEvent[]): AlertItem[] {
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
  fingerprint: { name: "fingerprint", means: "one agent makes the same call, or the same few calls in turn" },
  similarity: { name: "similarity", means: "one agent asks the same in other words and learns nothing" },
  monologue: { name: "monologue", means: "one agent's thoughts go round without a call" },
};

/** The first detector compares intents of the whole session, whatever name its event gives. */
export function detectorOf(alarm: Pick<AlertItem, "event_type" | "detector">): {
  name: string;
  means: string;
} {
  if (alarm.event_type === "entropy_alert") return DETECTORS.ratio as { name: string; means: string };
  return DETECTORS[alarm.detector] ?? { name: alarm.detector, means: "one agent does the same again" };
}

const FAILED = new Set(["failure", "failed", "error", "timeout"]);

export interface Said {
  /** Before, the tool or nothing, after: the tool is shown as code. */
  before: string;
  code: string | null;
  after: string;
}

/** "loop: same failing `serp_search` 5 times in 40 s". `lastedMs` is null while it is not known. */
export function sentence(alarm: AlertItem, lastedMs: number | null): Said {
  const { tool_call, intent, action_status } = alarm.repeated_pattern;
  const lasted = lastedMs === null ? "" : ` in ${lastedMs < 1_000 ? "under 1 s" : span(lastedMs)}`;
  const count = alarm.occurrence_count;
  const times = count === 1 ? "once" : `${count} times`;
  const failing = action_status !== null && FAILED.has(action_status) ? "failing " : "";
  if (alarm.detector === "monologue")
    return { before: `loop: ${count} thoughts in the same words`, code: null, after: `${lasted}, no call` };
  // A cycle is counted in rounds; the window holds all its steps.
  const turns = alarm.event_type === "loop_detected" && count > 0 ? Math.round(alarm.window_size / count) : 1;
  if (turns > 1)
    return {
      before: `loop: the same ${turns} calls in turn, `,
      code: null,
      after: `${count} rounds${lasted}`,
    };
  const after = ` ${times}${lasted}`;
  if (tool_call) {
    const kind = alarm.detector === "similarity" ? `${failing}calls in other words of ` : `${failing}`;
    return { before: `loop: same ${kind}`, code: tool_call, after };
  }
  return { before: `loop: same ${failing}step${intent ? ` “${cut(intent, 60)}”` : ""}`, code: null, after };
}

export function plain({ before, code, after }: Said): string {
  return `${before}${code ? `\`${code}\`` : ""}${after}`;
}

export interface Step {
  sequence_number: number;
  step_id: string;
  at: string | null;
  tool: string | null;
}

/**
 * How long the repeated steps took, from an agent's messages (any order): the last `occurrence_count` with the
 * pattern's tool up to the one that raised the alarm. Null when they are not all there.
 */
export function lasted(alarm: AlertItem, steps: readonly Step[]): number | null {
  const tool = alarm.repeated_pattern.tool_call;
  const until = steps
    .filter((step) => step.sequence_number <= alarm.sequence_number && (tool === null || step.tool === tool))
    .sort((a, b) => b.sequence_number - a.sequence_number)
    .slice(0, Math.max(alarm.occurrence_count, 2));
  const [last, first] = [until[0]?.at, until.at(-1)?.at];
  if (until.length < Math.max(alarm.occurrence_count, 2) || !last || !first) return null;
  return Date.parse(last) - Date.parse(first);
}

export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
