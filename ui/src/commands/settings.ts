// Settings commands: alert rules, redaction, retention, detectors, cluster regions. Each shows the new state
// and offers an undo where the gateway has one.
import { send } from "~/api/client";
import { plural } from "~/plural";
import type { AlertRuleBody, ClusterPlace, NewRedaction, RetentionBody, RuleItem } from "~/protocol/openapi";
import { andRefetch, type Refused, runCommand } from "./session";

const RULES = ["/v1/alert-rules", "/v1/alerts"];

/** A rule's fields, from which it can be created again. */
export function bodyOfRule(rule: RuleItem): AlertRuleBody {
  const { name, condition, scope, target, compare, threshold, for_s, cooldown_s, severity } = rule;
  const { window_s, endpoint_ids, enabled } = rule;
  const body = { name, condition, scope, target, compare, threshold, for_s, cooldown_s, severity };
  return { ...body, window_s, endpoint_ids, enabled };
}

export function makeRule(body: AlertRuleBody, refused?: Refused) {
  return andRefetch(
    RULES,
    runCommand(
      "Creating the rule",
      () => send("POST /v1/alert-rules", { body }),
      () => ({ text: `“${body.name}” is active.` }),
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
  return andRefetch(
    RULES,
    runCommand(
      "Saving the rule",
      () => send("PUT /v1/alert-rules/{rule_id}", { params, body: { ...body, was } }),
      (saved) => ({
        text: `“${saved.name}” saved; its window restarts.`,
        undo: () => changeRule(saved, bodyOfRule(rule), saved.updated_at),
      }),
      refused,
    ),
  );
}

export function removeRule(rule: RuleItem) {
  return andRefetch(
    RULES,
    runCommand(
      "Removing the rule",
      () => send("DELETE /v1/alert-rules/{rule_id}", { params: { rule_id: rule.rule_id } }),
      () => ({ text: `“${rule.name}” is removed.`, undo: () => makeRule(bodyOfRule(rule)) }),
    ),
  );
}

export function muteRule(rule: RuleItem, minutes: number): Promise<unknown> {
  const params = { rule_id: rule.rule_id };
  return andRefetch(
    RULES,
    runCommand(
      minutes ? "Muting" : "Unmuting",
      () => send("POST /v1/alert-rules/{rule_id}/mute", { params, body: { minutes } }),
      () => ({
        text: minutes
          ? `“${rule.name}” is muted for ${plural(minutes, "minute")}: shown here, no notifications sent.`
          : `“${rule.name}” is unmuted.`,
        undo: minutes && !rule.muted_until ? () => muteRule(rule, 0) : undefined,
      }),
    ),
  );
}

export function makeDefaultRules(endpoint_ids: string[]) {
  return andRefetch(
    RULES,
    runCommand(
      "Creating the rules",
      () => send("POST /v1/alert-rules/defaults", { body: { endpoint_ids } }),
      ({ items }) => ({
        text: items.length === 0 ? "All of them already exist." : `${plural(items.length, "rule")} created.`,
      }),
    ),
  );
}

export function addRedaction(body: NewRedaction, refused?: Refused): Promise<unknown> {
  return andRefetch(
    ["/v1/redaction"],
    runCommand(
      "Adding the rule",
      () => send("POST /v1/redaction", { body }),
      (made) => ({
        text: `From the next message on, ${made.name} is redacted before anything is stored.`,
        undo: () => endRedaction(made.rule_id, body),
      }),
      refused,
    ),
  );
}

export function endRedaction(rule_id: string, before: NewRedaction): Promise<unknown> {
  return andRefetch(
    ["/v1/redaction"],
    runCommand(
      "Removing the rule",
      () => send("DELETE /v1/redaction/{rule_id}", { params: { rule_id } }),
      () => ({
        text: `From the next message on, ${before.name} is stored unredacted.`,
        undo: () => addRedaction(before),
      }),
    ),
  );
}

export function keepFor(body: RetentionBody, refused?: Refused) {
  return andRefetch(
    ["/v1/retention"],
    runCommand(
      "Changing the retention",
      () => send("PUT /v1/retention", { body }),
      ({ days }) => ({
        text:
          days === null
            ? "Retention is unlimited from now on. Shredded data cannot be restored."
            : `Data older than ${plural(days ?? 0, "day")} is shredded, now and continuously.`,
      }),
      refused,
    ),
  );
}

/** Only the changed fields; null restores a default. `before` can be restored. */
export function setDetectors(
  changes: Record<string, unknown>,
  before: Record<string, unknown>,
  refused?: Refused,
): Promise<unknown> {
  return andRefetch(
    ["/v1/settings/detectors"],
    runCommand(
      "Changing the detectors",
      () => send("PUT /v1/settings/detectors", { body: changes }),
      () => ({
        text: "The new thresholds apply from the next message.",
        undo: () => setDetectors(before, changes),
      }),
      refused,
    ),
  );
}

export function placeClusters(
  clusters: Record<string, ClusterPlace>,
  before: Record<string, ClusterPlace>,
  was: string | null,
  refused?: Refused,
): Promise<unknown> {
  return andRefetch(
    ["/v1/fleet/regions"],
    runCommand(
      "Assigning regions",
      () => send("PUT /v1/fleet/regions", { body: { clusters, was } }),
      (saved) => ({
        text: "The geographic map shows the new regions.",
        undo: () => placeClusters(before, clusters, saved.updated_at),
      }),
      refused,
    ),
  );
}
