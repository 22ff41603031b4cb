// An alert rule as a form and as a sentence. Pure.
import type { AlertRuleBody, ConditionItem, RuleItem } from "~/protocol/openapi";
import type { Faults } from "../faults";
import type { Values } from "../parts/useForm";
import { secondsOf, spanFault, spanText } from "../spans";

export const SEVERITIES = ["info", "warning", "error", "critical"] as const;
export const TONES = { info: "active", warning: "blocked", error: "violation", critical: "alert" } as const;
export const MARKS = { info: "i", warning: "!", error: "!!", critical: "■" } as const;
const LONGEST = 86_400;

export function valuesOf(rule: RuleItem): Values {
  return {
    name: rule.name,
    condition: rule.condition,
    scope: rule.scope,
    target: rule.target ?? "",
    compare: rule.compare,
    threshold: String(rule.threshold),
    window_s: spanText(rule.window_s ?? 0),
    for_s: spanText(rule.for_s),
    cooldown_s: spanText(rule.cooldown_s),
    severity: rule.severity,
    endpoint_ids: rule.endpoint_ids,
    enabled: rule.enabled,
  };
}

/** A new rule with its metric's defaults. */
export function startOf(condition: ConditionItem, name: string): Values {
  return {
    name,
    condition: condition.condition,
    scope: condition.scopes[0] ?? "tenant",
    target: "",
    compare: "above",
    threshold: String(condition.threshold),
    window_s: spanText(condition.window_s ?? 0),
    for_s: "0 s",
    cooldown_s: "5 min",
    severity: "warning",
    endpoint_ids: [],
    enabled: true,
  };
}

export function readRule(
  values: Values,
  condition: ConditionItem | undefined,
): { body: AlertRuleBody; faults: null } | { body: null; faults: Faults } {
  const faults: Faults = {};
  const text = (name: string) => String(values[name] ?? "").trim();
  if (text("name") === "") faults.name = "Enter a name.";
  const threshold = Number(text("threshold"));
  if (text("threshold") === "" || !Number.isFinite(threshold) || threshold < 0)
    faults.threshold = "Must be a number of at least 0.";
  const counts = condition?.counts_events ?? false;
  const times = { [counts ? "window_s" : "for_s"]: counts ? 1 : 0, cooldown_s: 0 };
  for (const [name, least] of Object.entries(times)) {
    const fault = spanFault(text(name), least, LONGEST);
    if (fault) faults[name] = fault;
  }
  if (!counts && text("compare") === "below" && text("target") === "" && text("scope") !== "tenant")
    faults.target = `“At or below” needs one ${text("scope")}: idle ones are not listed.`;
  if (Object.keys(faults).length > 0) return { body: null, faults };
  return {
    body: {
      name: text("name"),
      condition: text("condition") as AlertRuleBody["condition"],
      scope: text("scope") as AlertRuleBody["scope"],
      target: text("scope") === "tenant" ? null : text("target") || null,
      compare: counts ? "above" : (text("compare") as "above" | "below"),
      threshold,
      window_s: counts ? secondsOf(text("window_s")) : null,
      for_s: counts ? 0 : (secondsOf(text("for_s")) ?? 0),
      cooldown_s: secondsOf(text("cooldown_s")) ?? 300,
      severity: text("severity") as AlertRuleBody["severity"],
      endpoint_ids: (values.endpoint_ids as string[]) ?? [],
      enabled: values.enabled === true,
    },
    faults: null,
  };
}

type RuleLimit = Pick<
  RuleItem,
  "condition" | "scope" | "target" | "compare" | "threshold" | "window_s" | "for_s"
>;

/** 1 message, 5 messages; `s` is seconds and stays. */
export function unitOf(figure: number, unit: string): string {
  return figure === 1 ? unit.replace(/(\w{3})s$/, "$1") : unit;
}

/** "5 messages or more within 5 min, for each agent" */
export function limitOf(rule: RuleLimit, condition: ConditionItem | undefined): string {
  const unit = unitOf(rule.threshold, condition?.unit ?? "");
  const many = rule.compare === "below" ? "or fewer" : "or more";
  const figure = [String(rule.threshold), unit, many].filter(Boolean).join(" ");
  const lasts = condition?.counts_events
    ? ` within ${spanText(rule.window_s ?? 0)}`
    : rule.for_s > 0
      ? ` for ${spanText(rule.for_s)}`
      : "";
  const scopeText = rule.target
    ? `, of ${rule.scope} ${rule.target}`
    : rule.scope === "tenant"
      ? ""
      : `, for each ${rule.scope}`;
  return `${figure}${lasts}${scopeText}`;
}
