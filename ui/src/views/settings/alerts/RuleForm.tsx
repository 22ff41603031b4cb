// Form of an alert rule: metric, scope, condition, severity, channels.
import { changeRule, makeRule } from "~/commands/settings";
import type { ConditionItem, RuleItem, WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { CheckboxField, CheckboxGroupField, SelectField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { useForm } from "../parts/useForm";
import { limitOf, readRule, SEVERITIES, startOf, valuesOf } from "./rules";

interface Props {
  rule: RuleItem | null;
  conditions: readonly ConditionItem[];
  channels: readonly WebhookItem[];
  denied: string | undefined;
}

const LOW = ["queue_depth", "burn_rate"];

export function RuleForm({ rule, conditions, channels, denied }: Props) {
  const [, setUrl] = useUrl();
  const first = conditions[0];
  const saved = rule ? valuesOf(rule) : first ? startOf(first, "") : {};
  const form = useForm(`rule ${rule?.rule_id ?? "new"}`, saved, rule?.updated_at ?? null);
  const condition = conditions.find((one) => one.condition === form.text("condition"));
  const read = readRule(form.values, condition);
  const save = async () => {
    if (read.faults) return form.setFaults(read.faults);
    const done = rule
      ? await changeRule(rule, read.body, form.was, form.refused)
      : await makeRule(read.body, form.refused);
    if (!done) return;
    form.forget();
    setUrl({ one: done.rule_id }, true);
  };
  const choose = (name: string) => {
    const next = conditions.find((one) => one.condition === name);
    // Another metric has other thresholds: the previous values are meaningless.
    if (next) form.set({ ...startOf(next, form.text("name")), endpoint_ids: form.list("endpoint_ids") });
  };
  return (
    <FormBox
      form={form}
      label={rule ? `Rule ${rule.name}` : "New rule"}
      does={rule ? "Save rule" : "Create rule"}
      denied={denied}
      isNew={rule === null}
      onSave={save}
    >
      <TextField form={form} name="name" label="Name" maxLength={100} />
      <SelectField
        form={{ ...form, set: (changes) => choose(String(changes.condition)) }}
        name="condition"
        label="Metric"
        means={condition?.text}
        options={conditions.map((one) => ({
          value: one.condition,
          label: one.condition.replaceAll("_", " "),
        }))}
      />
      <div className={classes.two}>
        <SelectField
          form={form}
          name="scope"
          label="Per"
          options={(condition?.scopes ?? []).map((scope) => ({
            value: scope,
            label: scope === "tenant" ? "tenant" : scope,
          }))}
        />
        {form.text("scope") !== "tenant" && (
          <TextField form={form} name="target" label={`Only this ${form.text("scope")}`} placeholder="all" />
        )}
      </div>
      <div className={classes.two}>
        {LOW.includes(form.text("condition")) && (
          <SelectField
            form={form}
            name="compare"
            label="Condition"
            options={[
              { value: "above", label: "at or above" },
              { value: "below", label: "at or below" },
            ]}
          />
        )}
        <TextField
          form={form}
          name="threshold"
          label={condition?.unit ? `Threshold (${condition.unit})` : "Threshold"}
          inputMode="decimal"
        />
        {condition?.counts_events ? (
          <TextField form={form} name="window_s" label="Window" />
        ) : (
          <TextField form={form} name="for_s" label="For" />
        )}
        <TextField form={form} name="cooldown_s" label="Cooldown" />
        <SelectField
          form={form}
          name="severity"
          label="Severity"
          options={SEVERITIES.map((one) => ({ value: one, label: one }))}
        />
      </div>
      {channels.length > 0 ? (
        <CheckboxGroupField
          form={form}
          name="endpoint_ids"
          label="Channels"
          options={channels.map((one) => ({
            value: one.endpoint_id,
            label: `${one.name} (${one.kind}${one.state === "disabled" ? ", disabled" : ""})`,
          }))}
        />
      ) : (
        <p className={classes.note}>
          No channels yet: alerts show only in this UI. Create one under Channels.
        </p>
      )}
      <CheckboxField form={form} name="enabled" label="Enabled" />
      {read.body && (
        <p className={classes.says} role="status">
          Fires at: {limitOf(read.body as RuleItem, condition)}.
          {rule && form.isDirty && " Saving resolves its firing alerts and restarts its window."}
        </p>
      )}
    </FormBox>
  );
}
