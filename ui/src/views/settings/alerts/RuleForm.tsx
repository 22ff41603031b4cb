// A rule as a form: what is watched, of whom, from which figure on, how loud, and who is told.
import { changeRule, makeRule } from "~/acts/settings";
import type { ConditionItem, RuleItem, WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Pick, Text, Tick, Ticks } from "../parts/Fields";
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
    // Another measure has other limits: what was set for the last one means nothing here.
    if (next) form.set({ ...startOf(next, form.text("name")), endpoint_ids: form.list("endpoint_ids") });
  };
  return (
    <FormBox
      form={form}
      label={rule ? `Rule ${rule.name}` : "New rule"}
      does={rule ? "Save the rule" : "Watch from now on"}
      denied={denied}
      isNew={rule === null}
      onSave={save}
    >
      <Text form={form} name="name" label="Name" maxLength={100} />
      <Pick
        form={{ ...form, set: (changes) => choose(String(changes.condition)) }}
        name="condition"
        label="Watches"
        means={condition?.text}
        options={conditions.map((one) => ({
          value: one.condition,
          label: one.condition.replaceAll("_", " "),
        }))}
      />
      <div className={classes.two}>
        <Pick
          form={form}
          name="scope"
          label="Of each"
          options={(condition?.scopes ?? []).map((scope) => ({
            value: scope,
            label: scope === "tenant" ? "all together" : scope,
          }))}
        />
        {form.text("scope") !== "tenant" && (
          <Text form={form} name="target" label={`Only this ${form.text("scope")}`} placeholder="every one" />
        )}
      </div>
      <div className={classes.two}>
        {LOW.includes(form.text("condition")) && (
          <Pick
            form={form}
            name="compare"
            label="Amiss when"
            options={[
              { value: "above", label: "at or above" },
              { value: "below", label: "at or below" },
            ]}
          />
        )}
        <Text
          form={form}
          name="threshold"
          label={condition?.unit ? `From (${condition.unit})` : "From"}
          inputMode="decimal"
        />
        {condition?.counts_events ? (
          <Text form={form} name="window_s" label="Within" />
        ) : (
          <Text form={form} name="for_s" label="If it lasts" />
        )}
        <Text form={form} name="cooldown_s" label="Quiet after telling" />
        <Pick
          form={form}
          name="severity"
          label="Severity"
          options={SEVERITIES.map((one) => ({ value: one, label: one }))}
        />
      </div>
      {channels.length > 0 ? (
        <Ticks
          form={form}
          name="endpoint_ids"
          label="Told to"
          options={channels.map((one) => ({
            value: one.endpoint_id,
            label: `${one.name} (${one.kind}${one.state === "disabled" ? ", disabled" : ""})`,
          }))}
        />
      ) : (
        <p className={classes.note}>
          There is no channel yet: it shows here and in the windows, and nobody outside is told. Make one
          under Channels.
        </p>
      )}
      <Tick form={form} name="enabled" label="On" />
      {read.body && (
        <p className={classes.says} role="status">
          Amiss: {limitOf(read.body as RuleItem, condition)}.
          {rule && form.isDirty && " Saving resolves what is open of it and counts anew."}
        </p>
      )}
    </FormBox>
  );
}
