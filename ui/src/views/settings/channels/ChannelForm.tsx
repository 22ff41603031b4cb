// Form of a channel. Rarely changed settings (filters, rate, retries) are folded.

import { useApi } from "~/api/queries";
import { changeChannel, makeChannel } from "~/commands/connections";
import type { WebhookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Collapsible } from "../parts/Collapsible";
import { MultiSelectField, SelectField, TagsField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { useForm } from "../parts/useForm";
import type { Fresh } from "./Channels";
import { isHidden, KINDS, type Kind, NEW, readEndpoint, valuesOf } from "./endpoints";

interface Props {
  item: WebhookItem | null;
  events: readonly string[];
  denied: string | undefined;
  onSecret: (fresh: Fresh) => void;
}

const FILTER_MEANS = {
  agent: "Agents",
  session: "Sessions",
  cluster: "Clusters",
  tool: "Tools",
  message_type: "Message types",
} as const;
const SEVERITIES = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

export function ChannelForm({ item, events, denied, onSecret }: Props) {
  const [, setUrl] = useUrl();
  const rules = useApi("/v1/alert-rules");
  const form = useForm(
    `channel ${item?.endpoint_id ?? "new"}`,
    item ? valuesOf(item) : NEW,
    item?.changed_at ?? null,
  );
  const kind = KINDS[form.text("kind") as Kind] ?? KINDS.webhook;
  const save = async () => {
    const read = readEndpoint(form.values, item !== null && isHidden(item.url));
    if (read.faults) return form.setFaults(read.faults);
    if (item) {
      if (await changeChannel(item.endpoint_id, read.body, form.was, form.refused)) form.forget();
      return;
    }
    const made = await makeChannel(read.body, form.refused);
    if (!made) return;
    if (made.secret) onSecret({ endpoint_id: made.endpoint_id, secret: made.secret });
    form.forget();
    setUrl({ one: made.endpoint_id }, true);
  };
  return (
    <FormBox
      form={form}
      label={item ? `Channel ${item.name}` : "New channel"}
      does={item ? "Save channel" : "Create channel"}
      denied={denied}
      isNew={item === null}
      onSave={save}
    >
      <TextField form={form} name="name" label="Name" maxLength={100} />
      {item ? null : (
        <SelectField
          form={form}
          name="kind"
          label="Kind"
          options={Object.entries(KINDS).map(([value, { word }]) => ({ value, label: word }))}
        />
      )}
      <TextField
        form={form}
        name="url"
        label={kind.address}
        means={item && isHidden(item.url) ? `${item.url} · ${kind.means}` : kind.means}
        placeholder={item && isHidden(item.url) ? "paste it again to save changes" : kind.sample}
      />
      {form.text("kind") === "email" && rules.data && !rules.data.mail_is_set && (
        <p className={classes.note}>
          ! This gateway has no mail server yet: start it with OBSERVATORY_SMTP_URL and OBSERVATORY_SMTP_FROM.
          Until then every e-mail fails.
        </p>
      )}
      <MultiSelectField
        form={form}
        name="events"
        label="Events"
        means="Each of these is sent. Without any, only alerts that name this channel."
        of={events}
        hint="task_completed, gate_opened, …"
      />
      <Collapsible
        word="Filters, rate and retries"
        open={["rate_per_min", "schedule_s"].some((name) => name in form.faults)}
      >
        <p className={classes.says}>An event must match every filter that is set.</p>
        {Object.entries(FILTER_MEANS).map(([name, word]) => (
          <TagsField key={name} form={form} name={`filters.${name}`} label={word} hint="any" />
        ))}
        <MultiSelectField form={form} name="filters.severity" label="Severities" of={SEVERITIES} hint="any" />
        <TextField form={form} name="rate_per_min" label="Maximum per minute" inputMode="numeric" />
        <TextField
          form={form}
          name="schedule_s"
          label="Retry delays"
          means="Times separated by commas; after the last it becomes a dead letter."
        />
      </Collapsible>
    </FormBox>
  );
}
