// Policy rules as text: a sentence for each, a draft of one, the order of all, and the risk according to a
// trial over past traffic. Pure.

import { plural } from "~/plural";
import type { AgentItem, DryRunAnswer, Match, PolicyItem, RuleBody, StoppedAgent } from "~/protocol/openapi";

export type Effect = PolicyItem["effect"];
export type Part = keyof Match;

export const EFFECTS: Record<Effect, { mark: string; word: string; tone: string; means: string }> = {
  deny: { mark: "×", word: "deny", tone: "alert", means: "refused, archived and reported to its sender" },
  hold: { mark: "‖", word: "hold", tone: "blocked", means: "held at a gate until approved or rejected" },
  allow: { mark: "✓", word: "allow", tone: "good", means: "only matters if the default is deny" },
};

/** What a rule can match and stop; anything else always passes. */
export const STOPPABLE = ["decision_log", "text", "status_alert", "action_confirmation", "artifact_share"];
const ESSENTIAL = ["heartbeat", "decision_request", "decision_response", "system_event"];

const rest = (word: string) => (word.endsWith("*") ? `${word.slice(0, -1)}…` : word);
const listed = (words: readonly string[]) => words.map(rest).join(" or ");

function party(words: readonly string[] | undefined, anyone: string): string {
  if (!words?.length || words.includes("*")) return anyone;
  return words
    .map((word) => {
      const [place, ...name] = word.split(":");
      if (!name.length) return word.endsWith("*") ? `any agent named ${rest(word)}` : word;
      if (place === "type")
        return word === "type:*" ? "every agent with a type" : `every ${rest(name.join(":"))}`;
      if (place === "cluster") return `agents of ${rest(name.join(":"))}`;
      return place === "session" ? `session ${rest(name.join(":"))}` : rest(word);
    })
    .join(" or ");
}

/** Seconds as text: `1 h`, `90 s`. */
export function spanOf(seconds: number): string {
  if (seconds % 86_400 === 0) return `${seconds / 86_400} d`;
  if (seconds % 3_600 === 0) return `${seconds / 3_600} h`;
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

const ended = (text: string) => (text.endsWith("…") ? text : `${text}.`);

export function sentence({ effect, match, quorum = 1, deadline_s, on_expiry }: RuleBody): string {
  const verb = { deny: "Deny", hold: "Hold", allow: "Allow" }[effect];
  const what = match.message_type?.length ? listed(match.message_type) : "everything";
  const where = match.cluster?.length ? ` in cluster ${listed(match.cluster)}` : "";
  const tool = match.tool?.length ? `, if it uses ${listed(match.tool)}` : "";
  const clause = `${verb} ${what} from ${party(match.sender, "any agent")}${where} to ${party(match.recipient, "any recipient")}${tool}`;
  if (effect !== "hold") return ended(clause);
  const people = plural(quorum, "approval");
  const late =
    deadline_s == null ? "" : `; after ${spanOf(deadline_s)}: ${on_expiry === "approve" ? "allow" : "deny"}`;
  return `${clause}, until ${people}${late}.`;
}

/** A rule without its position and history, in canonical form: two of them are compared as text. */
export function bodyOf(rule: RuleBody): RuleBody {
  const match: Match = {};
  for (const part of ["sender", "recipient", "message_type", "tool", "cluster"] as const) {
    const words = rule.match[part];
    if (words?.length) match[part] = [...words];
  }
  return {
    effect: rule.effect,
    match,
    quorum: rule.quorum ?? 1,
    deadline_s: rule.deadline_s ?? null,
    on_expiry: rule.on_expiry ?? "deny",
    note: rule.note ?? "",
    enabled: rule.enabled ?? true,
  };
}

export const textOf = (rule: RuleBody) => JSON.stringify(bodyOf(rule), null, 2);
export const isSame = (one: RuleBody, other: RuleBody) => textOf(one) === textOf(other);

export interface Draft {
  effect: Effect;
  match: Record<Part, string[]>;
  quorum: string;
  /** Seconds, minutes, hours or days as typed; "" for none. */
  deadline: string;
  on_expiry: "deny" | "approve";
  note: string;
  enabled: boolean;
}

export const NEW: Draft = {
  effect: "hold",
  match: { sender: [], recipient: [], message_type: [], tool: [], cluster: [] },
  quorum: "1",
  deadline: "",
  on_expiry: "deny",
  note: "",
  enabled: true,
};

export function draftOf(rule: RuleBody): Draft {
  const { effect, match, quorum, deadline_s, on_expiry, note, enabled } = bodyOf(rule);
  return {
    effect,
    match: { ...NEW.match, ...match },
    quorum: String(quorum),
    deadline: deadline_s == null ? "" : spanOf(deadline_s),
    on_expiry: on_expiry ?? "deny",
    note: note ?? "",
    enabled: enabled ?? true,
  };
}

const UNITS: Record<string, number> = { s: 1, "": 1, min: 60, m: 60, h: 3_600, d: 86_400 };
const LONGEST_S = 31_536_000;

/** `90`, `90 s`, `15 min`, `1 h`, `2 d` in seconds; null for none, NaN if invalid. */
export function secondsOf(text: string): number | null {
  if (!text.trim()) return null;
  const found = /^(\d+)\s*([a-z]*)$/i.exec(text.trim());
  const unit = UNITS[found?.[2]?.toLowerCase() ?? "?"];
  return found && unit !== undefined ? Number(found[1]) * unit : Number.NaN;
}

export type Faults = Partial<Record<Part | "quorum" | "deadline" | "note", string>>;

export function readDraft(draft: Draft): { body: RuleBody; faults: Faults } {
  const faults: Faults = {};
  for (const [part, words] of Object.entries(draft.match) as [Part, string[]][]) {
    if (words.some((word) => word.slice(0, -1).includes("*")))
      faults[part] = "A * is only allowed at the end of a word.";
    else if (words.length > 100) faults[part] = "At most 100 words.";
  }
  const always = draft.match.message_type.filter((word) => ESSENTIAL.includes(word));
  if (draft.effect !== "allow" && always.length)
    faults.message_type = `${listed(always)} always pass: no rule can stop them.`;
  const unknown = draft.match.message_type.filter(
    (word) =>
      ![...STOPPABLE, ...ESSENTIAL].some(
        (type) => type === word || (word.endsWith("*") && type.startsWith(word.slice(0, -1))),
      ),
  );
  if (unknown.length) faults.message_type = `Unknown type: ${listed(unknown)}.`;
  const quorum = Number(draft.quorum);
  const deadline_s = secondsOf(draft.deadline);
  if (draft.effect === "hold") {
    if (!/^\d+$/.test(draft.quorum.trim()) || quorum < 1 || quorum > 10)
      faults.quorum = "Must be 1 to 10 approvals.";
    if (deadline_s !== null && !(deadline_s >= 1 && deadline_s <= LONGEST_S))
      faults.deadline = "Must be a time such as 15 min or 1 h, at most a year.";
  }
  if (draft.note.length > 500) faults.note = "At most 500 characters.";
  const holds = draft.effect === "hold";
  const body = bodyOf({
    effect: draft.effect,
    match: draft.match,
    quorum: holds && !faults.quorum ? quorum : 1,
    deadline_s: holds && !faults.deadline ? deadline_s : null,
    on_expiry: holds ? draft.on_expiry : "deny",
    note: draft.note,
    enabled: draft.enabled,
  });
  return { body, faults };
}

/** Moves one to another position (from 0), clamped to the list. */
export function moved(order: readonly string[], id: string, to: number): string[] {
  const left = order.filter((one) => one !== id);
  if (left.length === order.length) return [...order];
  left.splice(Math.max(0, Math.min(to, left.length)), 0, id);
  return left;
}

/** My order over theirs: removed rules are left out, new ones come after their predecessor there. */
export function rebased(mine: readonly string[], theirs: readonly string[]): string[] {
  const next = mine.filter((id) => theirs.includes(id));
  theirs.forEach((id, n) => {
    if (next.includes(id)) return;
    const before = theirs[n - 1];
    next.splice(before === undefined ? 0 : next.indexOf(before) + 1, 0, id);
  });
  return next;
}

const EVERYBODY = ["*", "type:*", "agt_*"];

/**
 * Whether it denies every agent its steps: the gateway's own test, so that the warning comes before the
 * refusal.
 */
export function shutsOut({ effect, match, enabled }: RuleBody): boolean {
  const wide = (words: readonly string[] | undefined) =>
    !words?.length || words.some((word) => EVERYBODY.includes(word));
  const types = match.message_type ?? [];
  const steps =
    !types.length ||
    types.some(
      (word) =>
        word === "decision_log" || (word.endsWith("*") && "decision_log".startsWith(word.slice(0, -1))),
    );
  return (
    effect === "deny" &&
    enabled !== false &&
    steps &&
    [match.sender, match.recipient, match.tool, match.cluster].every(wide)
  );
}

export const stopped = ({ denied = 0, held = 0 }: StoppedAgent) => denied + held;
export const isSilenced = (agent: StoppedAgent) => (agent.sent ?? 0) > 0 && stopped(agent) === agent.sent;

/** The first few by name, and how many more. */
export function few(names: readonly string[], most = 3): string {
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(", ")} and ${more} more` : names.join(", ");
}

export interface Risk {
  says: string[];
  /** The text to type before it is saved; null if none. */
  typed: string | null;
}

/** Warnings from the trial: most of the traffic, silenced agents, the operator's own agents. */
export function riskOf(
  body: RuleBody,
  tried: DryRunAnswer,
  agents: readonly Pick<AgentItem, "agent_id" | "owner">[],
  me: string | null | undefined,
): Risk {
  const says: string[] = [];
  if (body.effect === "allow" || body.enabled === false) return { says, typed: null };
  const waits = body.effect === "hold";
  const all = shutsOut(body);
  const share = tried.stoppable ? (tried.denied + tried.held) / tried.stoppable : 0;
  if (all) says.push("No agent could send a step any more.");
  if (share > 0.5)
    says.push(
      `It would ${waits ? "hold" : "deny"} most of the traffic: ${Math.round(share * 100)} % of what agents sent.`,
    );
  const silent = tried.by_agent.filter(isSilenced).map((one) => one.agent_id);
  if (silent.length)
    says.push(
      waits
        ? `It would hold every message of ${silent.length} of ${plural(tried.agents, "agent")}: ${few(silent)}.`
        : `It would silence ${silent.length} of ${plural(tried.agents, "agent")}, every message: ${few(silent)}.`,
    );
  const mine = new Set(agents.filter((one) => me && one.owner === me).map((one) => one.agent_id));
  const own = tried.by_agent.filter((one) => mine.has(one.agent_id)).map((one) => one.agent_id);
  if (own.length) says.push(`It would stop your own agents: ${few(own)}.`);
  if (!says.length) return { says, typed: null };
  const typed =
    all || share > 0.5
      ? `${body.effect} ${all ? "everything" : "most messages"}`
      : `${body.effect} ${plural(tried.by_agent.length, "agent")}`;
  return { says, typed };
}

/** The result of a trial, in one sentence. */
export function foundOf(effect: Effect, tried: DryRunAnswer): string {
  const time =
    tried.minutes === 60
      ? "the last hour"
      : tried.minutes === 1_440
        ? "the last day"
        : `the last ${tried.minutes} min`;
  const of = `${tried.stoppable.toLocaleString("en")} messages of ${plural(tried.agents, "agent")} in ${time}`;
  const newest = tried.capped ? " (the newest only)" : "";
  if (effect === "allow")
    return `An allow rule stops nothing: ${of}${newest} would pass. It only matters if the default is deny.`;
  const n = tried.denied + tried.held;
  const share =
    tried.stoppable && n
      ? `, ${n / tried.stoppable < 0.01 ? "under 1" : Math.round((100 * n) / tried.stoppable)} %`
      : "";
  const did = effect === "hold" ? "held" : "denied";
  return n
    ? `It would have ${did} ${n.toLocaleString("en")} of the ${of}${newest}${share}.`
    : `It would have ${did} none of the ${of}${newest}.`;
}
