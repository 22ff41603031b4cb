// What an admin sets: rules, redaction, retention; and what operators set of detectors and places. Each tells what is so from now on, and takes it back where the gateway can.
import { send } from "~/api/client";
import type { AlertRuleBody, NewRedaction, Place, RetentionBody, RuleItem } from "~/protocol/openapi";
import { act, andAsk, type Refused } from "./acts";

const RULES = ["/v1/alert-rules", "/v1/alerts"];

/** A rule as it could be made again. */
export function bodyOfRule(rule: RuleItem): AlertRuleBody {
  const { name, condition, scope, target, compare, threshold, for_s, cooldown_s, severity } = rule;
  const { window_s, endpoint_ids, enabled } = rule;
  const body = { name, condition, scope, target, compare, threshold, for_s, cooldown_s, severity };
  return { ...body, window_s, endpoint_ids, enabled };
}

export function makeRule(body: AlertRuleBody, refused?: Refused) {
  return andAsk(
    RULES,
    act(
      "Making the rule",
      () => send("POST /v1/alert-rules", { body }),
      () => ({ text: `“${body.name}” watches from now on.` }),
      refused,
    ),
  );
}

export function changeRule(
  rule: RuleItem,
  body: AlertRuleBody,
  was: string | null,
  refused?: Refused,
): Promise<RuleItem | null> {
  const params = { rule_id: rule.rule_id };
  return andAsk(
    RULES,
    act(
      "Saving the rule",
      () => send("PUT /v1/alert-rules/{rule_id}", { params, body: { ...body, was } }),
      (saved) => ({
        text: `“${saved.name}” begins anew with what you saved.`,
        undo: () => changeRule(saved, bodyOfRule(rule), saved.updated_at),
      }),
      refused,
    ),
  );
}

export function removeRule(rule: RuleItem) {
  return andAsk(
    RULES,
    act(
      "Removing the rule",
      () => send("DELETE /v1/alert-rules/{rule_id}", { params: { rule_id: rule.rule_id } }),
      () => ({ text: `“${rule.name}” watches no more.`, undo: () => makeRule(bodyOfRule(rule)) }),
    ),
  );
}

export function muteRule(rule: RuleItem, minutes: number): Promise<unknown> {
  const params = { rule_id: rule.rule_id };
  return andAsk(
    RULES,
    act(
      minutes ? "Muting" : "Unmuting",
      () => send("POST /v1/alert-rules/{rule_id}/mute", { params, body: { minutes } }),
      () => ({
        text: minutes
          ? `“${rule.name}” is shown here and told to nobody outside, for ${minutes} minutes.`
          : `“${rule.name}” is told outside again.`,
        undo: minutes && !rule.muted_until ? () => muteRule(rule, 0) : undefined,
      }),
    ),
  );
}

export function makeDefaultRules(endpoint_ids: string[]) {
  return andAsk(
    RULES,
    act(
      "Making the rules",
      () => send("POST /v1/alert-rules/defaults", { body: { endpoint_ids } }),
      ({ items }) => ({
        text:
          items.length === 0
            ? "All of them are watched already."
            : `${items.length} ${items.length === 1 ? "rule watches" : "rules watch"} from now on.`,
      }),
    ),
  );
}

export function addRedaction(body: NewRedaction, refused?: Refused): Promise<unknown> {
  return andAsk(
    ["/v1/redaction"],
    act(
      "Adding the rule",
      () => send("POST /v1/redaction", { body }),
      (made) => ({
        text: `From the next message on, ${made.name} is taken out before anything is kept.`,
        undo: () => endRedaction(made.rule_id, body),
      }),
      refused,
    ),
  );
}

export function endRedaction(rule_id: string, before: NewRedaction): Promise<unknown> {
  return andAsk(
    ["/v1/redaction"],
    act(
      "Ending the rule",
      () => send("DELETE /v1/redaction/{rule_id}", { params: { rule_id } }),
      () => ({
        text: `From the next message on, ${before.name} is kept as it comes.`,
        undo: () => addRedaction(before),
      }),
    ),
  );
}

export function keepFor(body: RetentionBody, refused?: Refused) {
  return andAsk(
    ["/v1/retention"],
    act(
      "Changing the retention",
      () => send("PUT /v1/retention", { body }),
      ({ days }) => ({
        text:
          days === null
            ? "Everything is kept from now on. What was shredded does not come back."
            : `What is older than ${days} days is shredded, now and from now on.`,
      }),
      refused,
    ),
  );
}

/** Only what is to be otherwise; null takes a default back. `before` can be put back. */
export function setDetectors(
  changes: Record<string, unknown>,
  before: Record<string, unknown>,
  refused?: Refused,
): Promise<unknown> {
  return andAsk(
    ["/v1/settings/detectors"],
    act(
      "Changing the detectors",
      () => send("PUT /v1/settings/detectors", { body: changes }),
      () => ({
        text: "The detectors go by it with the next message.",
        undo: () => setDetectors(before, changes),
      }),
      refused,
    ),
  );
}

export function placeClusters(
  clusters: Record<string, Place>,
  before: Record<string, Place>,
  was: string | null,
  refused?: Refused,
): Promise<unknown> {
  return andAsk(
    ["/v1/fleet/regions"],
    act(
      "Placing the clusters",
      () => send("PUT /v1/fleet/regions", { body: { clusters, was } }),
      (saved) => ({
        text: "The world map shows them there.",
        undo: () => placeClusters(before, clusters, saved.updated_at),
      }),
      refused,
    ),
  );
}
