// Text of an open alert of either loop detector, for the map, the list and elsewhere. Pure.
import type { AlertItem } from "~/protocol/openapi";

const FAILED = new Set(["failure", "failed", "error", "timeout"]);

export interface LoopText {
  /** Text before, the tool or null, text after: the tool is shown as code. */
  before: string;
  code: string | null;
  after: string;
}

/** "loop: same failing `serp_search` 5 times", then `tail`: the time span, or the number of steps. */
export function loopText(alarm: AlertItem, tail: string, head = "loop"): LoopText {
  const { tool_call, intent, action_status } = alarm.repeated_pattern;
  const count = alarm.occurrence_count;
  const times = count === 1 ? "once" : `${count} times`;
  const failing = action_status !== null && FAILED.has(action_status) ? "failing " : "";
  if (alarm.detector === "monologue")
    return { before: `${head}: ${count} equal thoughts`, code: null, after: `${tail}, no call` };
  // A cycle is counted in rounds; the window holds all its steps.
  const turns = alarm.event_type === "loop_detected" && count > 0 ? Math.round(alarm.window_size / count) : 1;
  if (turns > 1)
    return {
      before: `${head}: the same ${turns} calls in turn, `,
      code: null,
      after: `${count} rounds${tail}`,
    };
  const after = ` ${times}${tail}`;
  if (tool_call) {
    const kind = alarm.detector === "similarity" ? `${failing}calls, reworded, of ` : `${failing}`;
    return { before: `${head}: same ${kind}`, code: tool_call, after };
  }
  return {
    before: `${head}: same ${failing}step${intent ? ` “${cut(intent, 60)}”` : ""}`,
    code: null,
    after,
  };
}

export function plain({ before, code, after }: LoopText): string {
  return `${before}${code ? `\`${code}\`` : ""}${after}`;
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
