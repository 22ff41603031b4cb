// The log of webhooks as rows: what we sent and what came, each with its state and its signature by mark and word;
// two feeds, each newest first and a page at a time, become one list without a gap. Pure.
import type { HookCallItem, HookItem, LoggedDelivery } from "~/protocol/openapi";

export interface Sign {
  mark: string;
  word: string;
  tone: string;
  means: string;
}

export type Group = "done" | "waiting" | "dead" | "refused";

export interface Entry {
  id: string;
  way: "out" | "in";
  at: string;
  /** The endpoint's or the hook's name, and its id. */
  who: string;
  whoId: string;
  event: string;
  group: Group;
  state: Sign;
  signature: Sign;
  tries: number;
  code: number | null;
  says: string;
  sent?: LoggedDelivery;
  came?: HookCallItem;
}

const DELIVERED: Sign = { mark: "✓", word: "delivered", tone: "good", means: "the receiver answered 2xx" };
const WAITING: Sign = { mark: "…", word: "waiting", tone: "active", means: "it has not been tried yet" };
const RETRYING: Sign = {
  mark: "↻",
  word: "retrying",
  tone: "blocked",
  means: "a try failed; the next one is set",
};
const DEAD: Sign = { mark: "×", word: "dead", tone: "alert", means: "given up on: a dead letter keeps it" };

/** What became of a call; `group` is the chip it is found under. */
export const OUTCOMES: Record<HookCallItem["outcome"], Sign & { group: Group }> = {
  forwarded: {
    mark: "✓",
    word: "taken in",
    tone: "good",
    means: "it became a message and was forwarded",
    group: "done",
  },
  answered: {
    mark: "✓",
    word: "answered",
    tone: "good",
    means: "a ping or a challenge, answered",
    group: "done",
  },
  ignored: {
    mark: "–",
    word: "ignored",
    tone: "idle",
    means: "signed, but its mapping does not want it",
    group: "done",
  },
  taken: {
    mark: "▸",
    word: "being taken",
    tone: "active",
    means: "durable, on its way through the corridor",
    group: "waiting",
  },
  held: {
    mark: "‖",
    word: "held",
    tone: "blocked",
    means: "its message waits for a person",
    group: "waiting",
  },
  refused: {
    mark: "!",
    word: "refused",
    tone: "violation",
    means: "the corridor refused its message",
    group: "refused",
  },
  unmapped: {
    mark: "!",
    word: "not mapped",
    tone: "violation",
    means: "signed, but the mapping does not fit its body",
    group: "refused",
  },
  not_taken: {
    mark: "!",
    word: "not taken",
    tone: "violation",
    means: "it could not be taken; the sender may call again",
    group: "refused",
  },
  turned_away: {
    mark: "×",
    word: "turned away",
    tone: "alert",
    means: "its signature was wrong or missing",
    group: "refused",
  },
};

const SIGNED: Sign = {
  mark: "✓",
  word: "signed by us",
  tone: "good",
  means: "signed with the endpoint's secret; which one, each try tells",
};
const UNSIGNED: Sign = { mark: "–", word: "not signed", tone: "idle", means: "Slack and mail carry none" };
const NEVER: Sign = {
  mark: "–",
  word: "never sent",
  tone: "idle",
  means: "given up on before it could be tried",
};
const UNTRIED: Sign = {
  mark: "…",
  word: "not yet",
  tone: "idle",
  means: "each try is signed when it is made",
};
const VERIFIED: Sign = {
  mark: "✓",
  word: "verified",
  tone: "good",
  means: "made with a secret of this hook, over these bytes",
};
const WRONG: Sign = {
  mark: "×",
  word: "wrong",
  tone: "alert",
  means: "signed, but with no secret of this hook",
};
const LATE: Sign = {
  mark: "×",
  word: "too old",
  tone: "alert",
  means: "the time it was signed at lies outside the hook's window: perhaps a replay",
};
const MISSING: Sign = { mark: "!", word: "missing", tone: "violation", means: "no signature came with it" };

export function signatureOf(call: Pick<HookCallItem, "signature" | "reason">): Sign {
  if (call.signature === "valid") return VERIFIED;
  if (call.signature === "missing") return MISSING;
  return call.reason?.includes("outside the window") ? LATE : WRONG;
}

export function ofDelivery(sent: LoggedDelivery): Entry {
  const waits = sent.state === "waiting";
  const isSigned = sent.endpoint_kind === "webhook";
  return {
    id: sent.delivery_id,
    way: "out",
    at: sent.created_at,
    who: sent.endpoint_name,
    whoId: sent.endpoint_id,
    event: sent.event_type,
    group: waits ? "waiting" : sent.state === "dead" ? "dead" : "done",
    state: waits ? (sent.attempts > 0 ? RETRYING : WAITING) : sent.state === "dead" ? DEAD : DELIVERED,
    signature: !isSigned ? UNSIGNED : sent.attempts > 0 ? SIGNED : sent.state === "dead" ? NEVER : UNTRIED,
    tries: sent.attempts,
    code: sent.last_code,
    says: sent.last_detail ?? "",
    sent,
  };
}

export function ofCall(call: HookCallItem, hooks: readonly HookItem[]): Entry {
  const hook = hooks.find((one) => one.hook_id === call.hook_id);
  const { group, ...state } = OUTCOMES[call.outcome];
  return {
    id: call.call_id,
    way: "in",
    at: call.at,
    who: hook?.name ?? "a removed hook",
    whoId: call.hook_id,
    event: hook ? `call of ${hook.scheme}` : "call",
    group,
    state,
    signature: signatureOf(call),
    tries: call.calls + call.repeats,
    code: null,
    says: call.reason ?? "",
    came: call,
  };
}

interface Paged<T> {
  items: readonly T[];
  next_cursor: string | null;
}

/** What was seen, with a newer first page put in: what the page covers is as the page says, the rest stays. */
export function folded<T>(
  seen: readonly T[],
  page: Paged<T>,
  nameOf: (row: T) => string,
  timeOf: (row: T) => string,
): T[] {
  const last = page.items.at(-1);
  if (page.next_cursor === null || last === undefined) return [...page.items];
  const known = new Set(page.items.map(nameOf));
  const since = timeOf(last);
  return [...page.items, ...seen.filter((row) => timeOf(row) <= since && !known.has(nameOf(row)))];
}

export interface Feed {
  /** Newest first. */
  entries: readonly Entry[];
  /** Older ones exist that were not fetched. */
  more: boolean;
}

/**
 * One list of both, newest first, down to where a feed ends that has more: below it something would be left out.
 * `behind` is the feed to go on with.
 */
export function merged(feeds: readonly Feed[]): { entries: Entry[]; behind: number | null } {
  let horizon = "";
  let behind: number | null = null;
  feeds.forEach(({ entries, more }, n) => {
    const end = entries.at(-1)?.at ?? "";
    if (more && (behind === null || end > horizon)) {
      horizon = end;
      behind = n;
    }
  });
  const entries = feeds
    .flatMap((feed) => feed.entries.filter((one) => one.at >= horizon))
    .sort((a, b) => (a.at === b.at ? (a.id < b.id ? 1 : -1) : a.at < b.at ? 1 : -1));
  return { entries, behind };
}

export interface Filters {
  q: string;
  way: "all" | "out" | "in";
  state: Group | null;
  /** An endpoint's or a hook's id. */
  endpoint: string | null;
  event: string | null;
  signature: HookCallItem["signature"] | null;
}

const GROUPS = new Set<string>(["done", "waiting", "dead", "refused"]);
const SIGNATURES = new Set<string>(["valid", "invalid", "missing"]);

export function readFilters(url: Record<string, string | undefined>): Filters {
  return {
    q: url.q ?? "",
    way: url.way === "out" || url.way === "in" ? url.way : "all",
    state: GROUPS.has(url.state ?? "") ? (url.state as Group) : null,
    endpoint: url.endpoint ?? null,
    event: url.event ?? null,
    signature: SIGNATURES.has(url.signature ?? "") ? (url.signature as Filters["signature"]) : null,
  };
}

export const isHook = (id: string | null) => id?.startsWith("whk_") ?? false;

/** Which of the two feeds can hold anything of what is asked for. */
export function asked({ way, state, endpoint, event, signature }: Filters): { out: boolean; in: boolean } {
  const out = way !== "in" && state !== "refused" && signature === null && !isHook(endpoint);
  const inward =
    way !== "out" && state !== "dead" && event === null && (endpoint === null || isHook(endpoint));
  return { out, in: inward };
}

/** The filters the gateway was not asked for, on the rows that came. */
export function fits(entry: Entry, { q, state }: Pick<Filters, "q" | "state">): boolean {
  if (state !== null && entry.group !== state) return false;
  if (!q) return true;
  const text =
    `${entry.id} ${entry.who} ${entry.event} ${entry.state.word} ${entry.signature.word} ${entry.says} ${entry.code ?? ""}`.toLowerCase();
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
