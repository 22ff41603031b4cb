// The webhook log as rows: outbound deliveries and inbound calls, each with its state and signature by mark
// and word; two feeds, each newest first and paged, become one list without a gap. Pure.
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

const DELIVERED: Sign = { mark: "✓", word: "delivered", tone: "good", means: "the receiver returned 2xx" };
const WAITING: Sign = { mark: "…", word: "pending", tone: "active", means: "not attempted yet" };
const RETRYING: Sign = {
  mark: "↻",
  word: "retrying",
  tone: "blocked",
  means: "an attempt failed; the next one is scheduled",
};
const DEAD: Sign = { mark: "×", word: "dead", tone: "alert", means: "out of retries: kept as a dead letter" };

/** The outcome of a call; `group` is its filter chip. */
export const OUTCOMES: Record<HookCallItem["outcome"], Sign & { group: Group }> = {
  forwarded: {
    mark: "✓",
    word: "accepted",
    tone: "good",
    means: "converted to a message and delivered",
    group: "done",
  },
  answered: {
    mark: "✓",
    word: "answered",
    tone: "good",
    means: "a ping or challenge, answered",
    group: "done",
  },
  ignored: {
    mark: "–",
    word: "ignored",
    tone: "idle",
    means: "signed, but filtered out by the mapping",
    group: "done",
  },
  taken: {
    mark: "▸",
    word: "processing",
    tone: "active",
    means: "stored, in the pipeline",
    group: "waiting",
  },
  held: {
    mark: "‖",
    word: "held",
    tone: "blocked",
    means: "its message is held for a person",
    group: "waiting",
  },
  refused: {
    mark: "!",
    word: "refused",
    tone: "violation",
    means: "the pipeline refused its message",
    group: "refused",
  },
  unmapped: {
    mark: "!",
    word: "not mapped",
    tone: "violation",
    means: "signed, but the mapping does not match its body",
    group: "refused",
  },
  not_taken: {
    mark: "!",
    word: "failed",
    tone: "violation",
    means: "could not be processed; the sender may retry",
    group: "refused",
  },
  turned_away: {
    mark: "×",
    word: "rejected",
    tone: "alert",
    means: "invalid or missing signature",
    group: "refused",
  },
};

const SIGNED: Sign = {
  mark: "✓",
  word: "signed",
  tone: "good",
  means: "signed with the endpoint's secret; see each attempt for the key",
};
const UNSIGNED: Sign = {
  mark: "–",
  word: "not signed",
  tone: "idle",
  means: "Slack and e-mail have no signature",
};
const NEVER: Sign = {
  mark: "–",
  word: "never sent",
  tone: "idle",
  means: "failed before the first attempt",
};
const UNTRIED: Sign = {
  mark: "…",
  word: "not yet",
  tone: "idle",
  means: "each attempt is signed when it is made",
};
const VERIFIED: Sign = {
  mark: "✓",
  word: "verified",
  tone: "good",
  means: "valid signature over these bytes with this webhook's secret",
};
const WRONG: Sign = {
  mark: "×",
  word: "invalid",
  tone: "alert",
  means: "not signed with this webhook's secret",
};
const LATE: Sign = {
  mark: "×",
  word: "expired",
  tone: "alert",
  means: "the signing time is outside the allowed window: possibly a replay",
};
const MISSING: Sign = { mark: "!", word: "missing", tone: "violation", means: "no signature" };

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
    who: hook?.name ?? "a removed webhook",
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

/** Merges a newer first page into the seen rows: the range it covers is replaced, the rest stays. */
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
  /** There are older ones that were not fetched. */
  more: boolean;
}

/**
 * Both feeds as one list, newest first, down to where a feed with more pages ends: below it something could
 * be missing. `behind` is the feed to page next.
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

/** Which of the two feeds can contain matches. */
export function asked({ way, state, endpoint, event, signature }: Filters): { out: boolean; in: boolean } {
  const out = way !== "in" && state !== "refused" && signature === null && !isHook(endpoint);
  const inward =
    way !== "out" && state !== "dead" && event === null && (endpoint === null || isHook(endpoint));
  return { out, in: inward };
}

/** Filters the gateway does not apply, applied to the fetched rows. */
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
