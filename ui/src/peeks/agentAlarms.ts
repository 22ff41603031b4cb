// An agent's recent alerts, equal ones listed once with a count. Pure.
import type { AlertNotice } from "~/protocol/openapi";

export interface Folded {
  text: string;
  times: number;
  /** The newest of them. */
  last: AlertNotice;
}

/** Newest first; the agent's own name is removed from the start of a sentence. */
export function folded(notices: readonly AlertNotice[], agent_id: string): Folded[] {
  const found = new Map<string, Folded>();
  for (const notice of notices) {
    if (notice.agent_id !== agent_id) continue;
    const text = notice.text.startsWith(`${agent_id} `)
      ? notice.text.slice(agent_id.length + 1)
      : notice.text;
    const known = found.get(text);
    if (known) known.times += 1;
    else found.set(text, { text, times: 1, last: notice });
  }
  return [...found.values()];
}
