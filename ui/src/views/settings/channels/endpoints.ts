// Form of a channel: receiver, events, rate, and retries. Pure.
import type { WebhookBody, WebhookItem } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";
import { spansOf, spanText } from "../spans";

export type Kind = WebhookItem["kind"];
export const KINDS: Record<Kind, { word: string; address: string; sample: string; means: string }> = {
  slack: {
    word: "Slack, Mattermost, Rocket.Chat",
    address: "Incoming-webhook URL",
    sample: "https://hooks.slack.com/services/…",
    means: "A secret: stored, and never shown again.",
  },
  email: {
    word: "E-mail",
    address: "Recipients",
    sample: "mailto:ops@example.com,lead@example.com",
    means: "mailto: and 1 to 20 addresses, separated by commas.",
  },
  webhook: {
    word: "Signed webhook",
    address: "URL",
    sample: "https://example.com/observatory",
    means: "https at a public address; signed as in Standard Webhooks.",
  },
};
export const FILTERS = ["agent", "session", "cluster", "tool", "severity", "message_type"] as const;

export const NEW: Values = {
  name: "",
  kind: "slack",
  url: "",
  events: [],
  rate_per_min: "600",
  schedule_s: "30 s, 2 min, 10 min, 1 h, 6 h",
  ...Object.fromEntries(FILTERS.map((name) => [`filters.${name}`, []])),
};

/** Slack URLs are never returned, others only to admins: the placeholder is not an address. */
export const isHidden = (url: string) => url.endsWith("/…");

export function valuesOf(item: WebhookItem): Values {
  return {
    name: item.name,
    kind: item.kind,
    url: isHidden(item.url) ? "" : item.url,
    events: item.events,
    rate_per_min: String(item.rate_per_min),
    schedule_s: item.schedule_s.map(spanText).join(", "),
    ...Object.fromEntries(FILTERS.map((name) => [`filters.${name}`, item.filters[name] ?? []])),
  };
}

export function readEndpoint(
  values: Values,
  hidden = false,
): { body: WebhookBody; faults: null } | { body: null; faults: Faults } {
  const faults: Faults = {};
  const text = (name: string) => String(values[name] ?? "").trim();
  if (text("name") === "") faults.name = "Enter a name.";
  let url = text("url");
  if (url === "") faults.url = hidden ? "Paste the address again: it is never shown." : "Enter an address.";
  // An address may be typed without the prefix.
  else if (text("kind") === "email" && !url.startsWith("mailto:")) url = `mailto:${url}`;
  const rate = Number(text("rate_per_min"));
  if (!Number.isInteger(rate) || rate < 1 || rate > 60_000)
    faults.rate_per_min = "Must be a whole number from 1 to 60,000.";
  const schedule = spansOf(text("schedule_s"));
  if (schedule === null) faults.schedule_s = "Must be times separated by commas: 30 s, 2 min, 1 h.";
  if (Object.keys(faults).length > 0 || schedule === null) return { body: null, faults };
  const filters: Record<string, string[]> = {};
  for (const name of FILTERS) {
    const words = values[`filters.${name}`];
    if (Array.isArray(words) && words.length > 0) filters[name] = words;
  }
  return {
    body: {
      name: text("name"),
      kind: text("kind") as Kind,
      url,
      events: values.events as string[],
      filters,
      rate_per_min: rate,
      schedule_s: schedule,
    },
    faults: null,
  };
}

/** The delivery status, as a mark and a word. */
export function standingOf(item: WebhookItem): { tone: string; word: string } {
  if (item.state === "disabled") return { tone: "idle", word: "○ disabled" };
  if (item.failures > 0) return { tone: "alert", word: `× failing (${item.failures})` };
  if (item.waiting > 0) return { tone: "blocked", word: `‖ ${item.waiting} pending` };
  return item.last_ok_at ? { tone: "good", word: "✓ healthy" } : { tone: "idle", word: "· never used" };
}
