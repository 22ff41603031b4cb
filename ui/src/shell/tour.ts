// The tour's five steps and where they lead. Each step asks the gateway for a real thing to point at: an
// open alarm, a gate, a fact that spread, a dear session. Where there is none it says how to get one.
import { useSyncExternalStore } from "react";
import { get } from "~/api/client";
import { money } from "~/widgets/words";

export interface Target {
  text: string;
  /** Where it is to be seen; without one `command` makes such a thing happen. */
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
    why: "Every agent is on the map. What is wrong is marked where it happens, by sign and colour.",
    find: async () => {
      const { items } = await get("/v1/alerts", { query: { limit: 50 } });
      const one =
        items.find((alert) => alert.open && alert.agent_id) ?? items.find((alert) => alert.agent_id);
      if (!one?.agent_id) return { text: "All is calm just now.", command: trigger("loop") };
      return { text: one.text, href: agentHref(one.agent_id) };
    },
  },
  {
    title: "Pause and inspect",
    why: "One click holds the agent and opens its session. Nothing it sends is lost; you can let it go on.",
    find: async () => {
      const { items } = await get("/v1/alerts", { query: { limit: 50 } });
      const loops = items.filter((alert) => ["loop", "entropy"].includes(alert.kind) && alert.session_id);
      const one = loops.find((alert) => alert.open) ?? loops[0];
      if (!one?.session_id) return { text: "No agent goes in circles just now.", command: trigger("loop") };
      return { text: one.text, href: `/sessions/${encodeURIComponent(one.session_id)}` };
    },
  },
  {
    title: "A gate waits for you",
    why: "Some messages wait for a person. You see the exact bytes, and may forward, edit or reject them.",
    find: async () => {
      const { items } = await get("/v1/waiting", { query: { limit: 50 } });
      const one = items.find((item) => item.kind === "gate") ?? items[0];
      if (!one) return { text: "Nothing waits for anybody just now.", command: trigger("gate") };
      const item = encodeURIComponent(`${one.kind}:${one.id}`);
      return { text: `${one.agent_id ?? "An agent"}: ${one.title ?? one.why}`, href: `/inbox?item=${item}` };
    },
  },
  {
    title: "Who infected whom",
    why: "A false fact spreads through memory. Scrub the session's state and see who built on it.",
    find: async () => {
      // The demo's own invention first; in any other mesh what was marked false, then what spread most.
      const told = await get("/v1/facts", { query: { text: INVENTED, limit: 20 } });
      const all = told.items.length > 0 ? told : await get("/v1/facts", { query: { limit: 200 } });
      const used = all.items.toSorted((a, b) => b.uses - a.uses);
      const one = used.find((fact) => fact.marked_false) ?? used[0];
      if (!one?.session_id || (one.uses === 0 && !one.marked_false))
        return { text: "No fact has spread yet.", command: trigger("infection") };
      const step = one.step ? `?step=${encodeURIComponent(one.step)}&colour=infection` : "?colour=infection";
      const spread = `${one.uses} ${one.uses === 1 ? "step" : "steps"} built on it`;
      return {
        text: `“${one.text}”, said by ${one.agent_id ?? "an agent"}: ${spread}.`,
        href: `/sessions/${encodeURIComponent(one.session_id)}${step}`,
      };
    },
  },
  {
    title: "Cost against its cap",
    why: "Every session shows what it spent and what it may. A cap warns first, then stops.",
    find: async () => {
      const { items } = await get("/v1/sessions", { query: { limit: 200 } });
      const one = items.toSorted((a, b) => (b.cap?.share ?? 0) - (a.cap?.share ?? 0))[0];
      if (!one?.cap) return { text: "No session has a cap yet.", command: trigger("budget") };
      const cap = one.cap.hard ?? one.cap.soft ?? 0;
      return {
        text: `“${one.goal ?? one.session_id}” is nearest: ${money(one.cap.spent)} of ${money(cap)}.`,
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

/** Closing it is for good: it comes back only when it is asked for. */
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
