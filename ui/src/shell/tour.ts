// The tour's five steps and their links. Each step asks the gateway for a real example: an open alert, a
// gate, a fact that spread, an expensive session. If there is none, it shows the command that creates one.
import { useSyncExternalStore } from "react";
import { get } from "~/api/client";
import { plural } from "~/plural";
import { money } from "~/widgets/format";

export interface Target {
  text: string;
  /** Where the example is; without one, `command` creates it. */
  href?: string;
  command?: string;
}
export interface Step {
  title: string;
  why: string;
  find: () => Promise<Target>;
}

const INVENTED = "NVDA fiscal year ends Dec 31";
const trigger = (incident: string) => `observatory demo --incident ${incident}`;
const agentHref = (agent: string) => `/fleet?peek=${encodeURIComponent(`agent:${agent}`)}`;

export const STEPS: readonly Step[] = [
  {
    title: "The map and its incident",
    why: "Every agent is on the map. Problems are marked where they happen, by symbol and colour.",
    find: async () => {
      const { items } = await get("/v1/alerts", { query: { limit: 50 } });
      const one =
        items.find((alert) => alert.open && alert.agent_id) ?? items.find((alert) => alert.agent_id);
      if (!one?.agent_id) return { text: "No open alerts right now.", command: trigger("loop") };
      return { text: one.text, href: agentHref(one.agent_id) };
    },
  },
  {
    title: "Pause and inspect",
    why: "One click pauses the agent and opens its session. Nothing it sends is lost; you can resume it.",
    find: async () => {
      const { items } = await get("/v1/alerts", { query: { limit: 50 } });
      const loops = items.filter((alert) => ["loop", "entropy"].includes(alert.kind) && alert.session_id);
      const one = loops.find((alert) => alert.open) ?? loops[0];
      if (!one?.session_id) return { text: "No agent is looping right now.", command: trigger("loop") };
      return { text: one.text, href: `/sessions/${encodeURIComponent(one.session_id)}` };
    },
  },
  {
    title: "A gate is waiting for you",
    why: "Some messages wait for approval. You see the exact bytes, and can approve, edit or reject them.",
    find: async () => {
      const { items } = await get("/v1/waiting", { query: { limit: 50 } });
      const one = items.find((item) => item.kind === "gate") ?? items[0];
      if (!one) return { text: "Nothing is waiting for approval right now.", command: trigger("gate") };
      const item = encodeURIComponent(`${one.kind}:${one.id}`);
      return { text: `${one.agent_id ?? "An agent"}: ${one.title ?? one.why}`, href: `/inbox?item=${item}` };
    },
  },
  {
    title: "Who infected whom",
    why: "A false fact spreads through memory. Step through the session's state and see which steps used it.",
    find: async () => {
      // The demo's own false fact first; in any other mesh the one marked false, then the most widespread.
      const invented = await get("/v1/facts", { query: { text: INVENTED, limit: 20 } });
      const all = invented.items.length > 0 ? invented : await get("/v1/facts", { query: { limit: 200 } });
      const used = all.items.toSorted((a, b) => b.uses - a.uses);
      const one = used.find((fact) => fact.marked_false) ?? used[0];
      if (!one?.session_id || (one.uses === 0 && !one.marked_false))
        return { text: "No fact has spread yet.", command: trigger("infection") };
      const step = one.step ? `?step=${encodeURIComponent(one.step)}&colour=infection` : "?colour=infection";
      const spread = `used by ${plural(one.uses, "step")}`;
      return {
        text: `“${one.text}”, stated by ${one.agent_id ?? "an agent"}: ${spread}.`,
        href: `/sessions/${encodeURIComponent(one.session_id)}${step}`,
      };
    },
  },
  {
    title: "Cost against its cap",
    why: "Every session shows its spend and its cap. A soft cap warns first, a hard cap stops.",
    find: async () => {
      const { items } = await get("/v1/sessions", { query: { limit: 200 } });
      const one = items.toSorted((a, b) => (b.cap?.share ?? 0) - (a.cap?.share ?? 0))[0];
      if (!one?.cap) return { text: "No session has a cap yet.", command: trigger("budget") };
      const cap = one.cap.hard ?? one.cap.soft ?? 0;
      return {
        text: `“${one.goal ?? one.session_id}” is closest to its cap: ${money(one.cap.spent)} of ${money(cap)}.`,
        href: `/sessions?peek=${encodeURIComponent(`session:${one.session_id}`)}`,
      };
    },
  },
];

const KEPT = "observatory:tour";
let at: number | null = null;
const listeners = new Set<() => void>();

function set(next: number | null): void {
  at = next;
  for (const listener of listeners) listener();
}

export function startTour(): void {
  set(0);
}

export function goTour(step: number): void {
  set(Math.max(0, Math.min(STEPS.length - 1, step)));
}

/** Closing it is permanent: it returns only on request. */
export function endTour(): void {
  localStorage.setItem(KEPT, "seen");
  set(null);
}

export function tourSeen(): boolean {
  return localStorage.getItem(KEPT) !== null;
}

export function useTour(): number | null {
  return useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => at,
  );
}
