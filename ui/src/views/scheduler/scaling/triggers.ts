// Scaling triggers as text, their level against the threshold, and their form. Pure.
import type { RuleItem, ScalingTriggerBody, TriggerLevel } from "~/protocol/openapi";
import { money, short } from "~/widgets/format";

export type Condition = RuleItem["condition"];
export type Scope = RuleItem["scope"];

const MEASURES: Partial<Record<Condition, string>> = {
  queue_depth: "unacknowledged messages",
  silent_agents: "silent agents",
  breaker: "circuit open",
  burn_rate: "spend per minute",
};

export function figure(condition: Condition, value: number): string {
  if (condition === "burn_rate") return money(value);
  if (condition === "breaker") return value >= 1 ? "open" : "closed";
  return short(value);
}

export function scopeText({ scope, target }: Pick<RuleItem, "scope" | "target">): string {
  if (scope === "tenant") return "of the tenant";
  const kind = scope === "capability" ? "type" : scope;
  return target === null ? `of any ${kind}` : `of ${kind} ${target}`;
}

/** `unacknowledged messages of type coder ≥ 50 for 15 min`. */
export function conditionText(rule: RuleItem): string {
  const lasts =
    rule.for_s > 0
      ? ` for ${rule.for_s >= 120 ? `${Math.round(rule.for_s / 60)} min` : `${rule.for_s} s`}`
      : "";
  const sign = rule.compare === "above" ? "≥" : "≤";
  const what = MEASURES[rule.condition] ?? rule.condition;
  if (rule.condition === "breaker") return `${what} ${scopeText(rule)}${lasts}`;
  return `${what} ${scopeText(rule)} ${sign} ${figure(rule.condition, rule.threshold)}${lasts}`;
}

export function suggestionText({ direction, amount }: Pick<RuleItem, "direction" | "amount">): string {
  const n = amount ?? 1;
  return `${direction === "down" ? "▼" : "▲"} ${n} ${direction === "down" ? "fewer" : "more"}`;
}

export interface TriggerState {
  mark: string;
  word: string;
  tone: string;
}

export function standingOf(rule: RuleItem, now: number): TriggerState {
  if (!rule.enabled) return { mark: "–", word: "off", tone: "idle" };
  if (rule.muted_until && Date.parse(rule.muted_until) > now)
    return { mark: "‖", word: "muted", tone: "blocked" };
  if (rule.open > 0) return { mark: "▲", word: "triggered", tone: "alert" };
  return { mark: "✓", word: "quiet", tone: "good" };
}

export interface Level {
  subject: string;
  value: number;
  breaches: boolean;
  /** How close the level is to the threshold, 0 to 1. */
  share: number;
}

export function levelsOf(rule: RuleItem, level: TriggerLevel | undefined): Level[] {
  return (level?.subjects ?? []).map(({ subject, value, breaches }) => {
    const far = rule.threshold > 0 ? value / rule.threshold : value > 0 ? 1 : 0;
    const share = rule.compare === "above" ? far : value <= rule.threshold ? 1 : 1 / Math.max(far, 1);
    return { subject: subject.replace(/^capability:/, "type:"), value, breaches, share: Math.min(1, share) };
  });
}

export interface Draft {
  name: string;
  condition: Condition;
  scope: Scope;
  target: string;
  compare: RuleItem["compare"];
  threshold: string;
  for_s: string;
  cooldown_s: string;
  direction: "up" | "down";
  amount: string;
  endpoint_ids: string[];
  enabled: boolean;
}

export const FRESH: Draft = {
  name: "",
  condition: "queue_depth",
  scope: "capability",
  target: "",
  compare: "above",
  threshold: "50",
  for_s: "0",
  cooldown_s: "300",
  direction: "up",
  amount: "1",
  endpoint_ids: [],
  enabled: true,
};

export function draftOf(rule: RuleItem): Draft {
  return {
    name: rule.name,
    condition: rule.condition,
    scope: rule.scope,
    target: rule.target ?? "",
    compare: rule.compare,
    threshold: String(rule.threshold),
    for_s: String(rule.for_s),
    cooldown_s: String(rule.cooldown_s),
    direction: rule.direction ?? "up",
    amount: String(rule.amount ?? 1),
    endpoint_ids: rule.endpoint_ids,
    enabled: rule.enabled,
  };
}

export type Faults = Partial<Record<keyof Draft, string>>;

function number(text: string, low: number, high: number, whole: boolean): number | string {
  const value = Number(text.trim());
  if (!text.trim() || Number.isNaN(value)) return "Enter a number.";
  if (whole && !Number.isInteger(value)) return "Enter a whole number.";
  return value < low || value > high ? `Must be from ${low} to ${high}.` : value;
}

export function read(draft: Draft): { body: ScalingTriggerBody | null; faults: Faults } {
  const faults: Faults = {};
  if (!draft.name.trim()) faults.name = "Enter a name.";
  const target = draft.scope === "tenant" ? "" : draft.target.trim();
  if (draft.compare === "below" && draft.scope !== "tenant" && !target)
    faults.target = "Enter a target: idle agents are not listed.";
  const numbers = {
    threshold: number(draft.threshold, 0, 1e12, false),
    for_s: number(draft.for_s, 0, 86_400, true),
    cooldown_s: number(draft.cooldown_s, 1, 86_400, true),
    amount: number(draft.amount, 1, 1_000, true),
  };
  for (const name of ["threshold", "for_s", "cooldown_s", "amount"] as const) {
    const found = numbers[name];
    if (typeof found === "string") faults[name] = found;
  }
  if (Object.keys(faults).length > 0) return { body: null, faults };
  return {
    faults,
    body: {
      name: draft.name.trim(),
      condition: draft.condition,
      scope: draft.scope,
      target: target || null,
      compare: draft.compare,
      direction: draft.direction,
      endpoint_ids: draft.endpoint_ids,
      enabled: draft.enabled,
      threshold: numbers.threshold as number,
      for_s: numbers.for_s as number,
      cooldown_s: numbers.cooldown_s as number,
      amount: numbers.amount as number,
    },
  };
}
