// Operator commands on an agent across all its sessions: pause everywhere, quarantine, evict, pause and
// inspect. Quarantine is a Policy Engine rule (deny everything this agent sends): its messages are refused,
// while a pause only holds them, and it is lifted by removing the rule. Evicting alone does not stop an
// agent: its next heartbeat brings it back.
import { get, send } from "~/api/client";
import { refetch } from "~/api/queries";
import { plural } from "~/plural";
import type { AgentCommanded, PolicyItem } from "~/protocol/openapi";
import { pause, runCommand } from "./session";

const QUARANTINE_NOTE = "quarantine";
const sessions = (n: number) => plural(n, "session");

function everywhere(agent_id: string, command: "pause" | "unpause", note: string | null) {
  return send(`POST /v1/agents/{agent_id}/${command}`, { params: { agent_id }, body: { note } });
}

function refusedText(answer: AgentCommanded): string {
  const refused = answer.sessions.filter((one) => one.state === "refused").length;
  return refused ? ` ${sessions(refused)} refused it.` : "";
}

export function pauseEverywhere(agent_id: string, note?: string) {
  return runCommand(
    "Pause",
    () => everywhere(agent_id, "pause", note ?? null),
    (answer) => ({
      text:
        answer.state === "paused"
          ? `${agent_id} is paused in all sessions: its messages are held, in new sessions too.${refusedText(answer)}`
          : `${agent_id} was already paused in all sessions.${refusedText(answer)}`,
      undo: answer.state === "paused" ? () => unpauseEverywhere(agent_id) : undefined,
    }),
  );
}

export function unpauseEverywhere(agent_id: string) {
  return runCommand(
    "Resume",
    () => everywhere(agent_id, "unpause", null),
    (answer) => ({
      text: `${agent_id} resumed${answer.done ? ` in ${sessions(answer.done)}` : ""}.${refusedText(answer)}`,
    }),
  );
}

/** The rule that quarantines an agent, if there is one. */
export function quarantineOf(agent_id: string, rules: readonly PolicyItem[]): PolicyItem | null {
  const whole = ({ match }: PolicyItem) =>
    match.sender?.length === 1 &&
    match.sender[0] === agent_id &&
    !match.recipient?.length &&
    !match.message_type?.length &&
    !match.tool?.length &&
    !match.cluster?.length;
  return rules.find((rule) => rule.effect === "deny" && whole(rule)) ?? null;
}

export function quarantine(agent_id: string) {
  return runCommand(
    "Quarantine",
    () =>
      send("POST /v1/policies", {
        body: {
          effect: "deny",
          match: { sender: [agent_id] },
          note: QUARANTINE_NOTE,
          position: 1,
          confirm: false,
        },
      }),
    (rule) => ({
      text: `${agent_id} is quarantined: everything it sends is refused and recorded, in every session.`,
      undo: () => lift(agent_id, rule.rule_id),
    }),
  ).finally(() => refetch("/v1/policies"));
}

export function lift(agent_id: string, rule_id: string) {
  return runCommand(
    "Lifting the quarantine",
    () => send("DELETE /v1/policies/{rule_id}", { params: { rule_id } }),
    () => ({ text: `${agent_id} may send again. What was refused stays refused.` }),
  ).finally(() => refetch("/v1/policies"));
}

export function evict(agent_id: string, note?: string) {
  return runCommand(
    "Evict",
    () =>
      send("POST /v1/agents/{agent_id}/evict", {
        params: { agent_id },
        body: { note: note ?? null },
      }),
    () => ({
      text: `${agent_id} evicted; its undelivered work goes to another agent of its type. A heartbeat brings it back.`,
    }),
  );
}

/** The session an agent worked in last; null if it never sent anything in a session. */
export async function newestSession(
  agent_id: string,
): Promise<{ session_id: string; last_step: string | null } | null> {
  const page = await get("/v1/agents/{agent_id}/sessions", { params: { agent_id }, query: { limit: 1 } });
  return page.items[0] ?? null;
}

/** The step of an open alert of this agent in this session, by its node id in the graph. */
export async function alarmedStep(session_id: string, agent_id: string): Promise<string | null> {
  const { items } = await get("/v1/entropy/alerts", { query: { limit: 100 } });
  const mine = items.filter((one) => one.session_id === session_id);
  const found = mine.find((one) => one.agent_id === agent_id) ?? mine[0];
  if (!found) return null;
  const step = String(found.sequence_number);
  return get("/v1/sessions/{session_id}/steps/{step}", { params: { session_id, step } }).then(
    (alarm) => alarm.id,
    () => step,
  );
}

export interface Inspected {
  session_id: string;
  step: string | null;
}

/** Pauses the agent in the session of its alert (or where it worked last) and returns the page to open. */
export async function pauseAndInspect(
  agent_id: string,
  session_id: string | null,
): Promise<Inspected | null> {
  const newest = session_id === null ? await newestSession(agent_id).catch(() => null) : null;
  const where = session_id ?? newest?.session_id;
  if (!where) return null;
  // Whatever the response to the pause, the page that explains it is opened.
  const [, step] = await Promise.all([
    pause(where, agent_id),
    alarmedStep(where, agent_id).catch(() => null),
  ]);
  return { session_id: where, step: step ?? newest?.last_step ?? null };
}
