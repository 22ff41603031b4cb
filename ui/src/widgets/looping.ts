// How an open alarm of either loop detector reads, on the map, in the list and wherever else one is shown. Pure.
import type { AlertItem } from "~/protocol/openapi";

const FAILED = new Set(["failure", "failed", "error", "timeout"]);

export interface Said {
  /** Before, the tool or nothing, after: the tool is shown as code. */
  before: string;
  code: string | null;
  after: string;
}

/** "loop: same failing `serp_search` 5 times", then `tail`: within what time, or in how many steps. */
export function looped(alarm: AlertItem, tail: string, head = "loop"): Said {
  const { tool_call, intent, action_status } = alarm.repeated_pattern;
  const count = alarm.occurrence_count;
  const times = count === 1 ? "once" : `${count} times`;
  const failing = action_status !== null && FAILED.has(action_status) ? "failing " : "";
  if (alarm.detector === "monologue")
    return { before: `${head}: ${count} thoughts in the same words`, code: null, after: `${tail}, no call` };
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
    const kind = alarm.detector === "similarity" ? `${failing}calls in other words of ` : `${failing}`;
    return { before: `${head}: same ${kind}`, code: tool_call, after };
  }
  return {
    before: `${head}: same ${failing}step${intent ? ` “${cut(intent, 60)}”` : ""}`,
    code: null,
    after,
  };
}

export function plain({ before, code, after }: Said): string {
  return `${before}${code ? `\`${code}\`` : ""}${after}`;
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
