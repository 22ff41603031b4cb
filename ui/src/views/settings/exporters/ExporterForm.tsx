// Form of an exporter. Empty headers keep the stored ones; a new host receives none of them.

import { useApi } from "~/api/queries";
import { changeExporter, makeExporter } from "~/commands/connections";
import type { ExporterItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Collapsible } from "../parts/Collapsible";
import { MultiSelectField, SelectField, TagsField, TextAreaField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { useForm } from "../parts/useForm";
import { isElsewhere, leastOf, NEW, readExporter, valuesOf } from "./exporters";

export function ExporterForm({ item, denied }: { item: ExporterItem | null; denied: string | undefined }) {
  const [, setUrl] = useUrl();
  const channels = useApi("/v1/webhooks/out");
  const form = useForm(
    `exporter ${item?.exporter_id ?? "new"}`,
    item ? valuesOf(item) : NEW,
    item?.updated_at ?? null,
  );
  // Not an audit event: a step that ends its task, sent to webhooks only.
  const events = (channels.data?.event_types ?? []).filter((one) => one !== "task_completed");
  const save = async () => {
    const read = readExporter(form.values);
    if (read.faults) return form.setFaults(read.faults);
    const { from, headers, ...body } = read.body;
    if (item) {
      const given = Object.keys(headers ?? {}).length > 0 ? headers : null;
      const change = { ...body, headers: given, was: form.was };
      if (await changeExporter(item.exporter_id, change, form.refused)) form.forget();
      return;
    }
    const made = await makeExporter({ ...body, headers, from }, form.refused);
    if (!made) return;
    form.forget();
    setUrl({ one: made.exporter_id }, true);
  };
  const moves = item !== null && item.headers.length > 0 && isElsewhere(item.url, form.text("url"));
  return (
    <FormBox
      form={form}
      label={item ? `Exporter ${item.name}` : "New exporter"}
      does={item ? "Save exporter" : "Create exporter"}
      denied={denied}
      isNew={item === null}
      onSave={save}
    >
      <TextField form={form} name="name" label="Name" maxLength={100} />
      <TextField
        form={form}
        name="url"
        label="URL"
        means="Without a path, http uses /v1/logs."
        placeholder="https://otlp.example.com"
      />
      <div className={classes.two}>
        <SelectField
          form={form}
          name="protocol"
          label="Protocol"
          options={[
            { value: "http", label: "OTLP over http" },
            { value: "grpc", label: "OTLP over gRPC" },
          ]}
        />
        {item === null && (
          <SelectField
            form={form}
            name="from"
            label="Start"
            options={[
              { value: "now", label: "with new events" },
              { value: "start", label: "at the first event" },
            ]}
          />
        )}
      </div>
      <TextAreaField
        form={form}
        name="headers"
        label="Headers"
        rows={2}
        mono
        means={
          item && item.headers.length > 0
            ? `Stored: ${item.headers.join(", ")}. Leave empty to keep them; new lines replace them all.`
            : "One per line: authorization: Bearer …. Stored, and never shown again."
        }
      />
      {moves && (
        <p className={classes.note}>! A new host does not receive the stored headers: enter them again.</p>
      )}
      <Collapsible
        word="Event filter"
        open={["event_types", "severity_min", "agents"].some((name) => name in form.faults)}
      >
        <MultiSelectField form={form} name="event_types" label="Events" of={events} hint="all" />
        <SelectField
          form={form}
          name="severity_min"
          label="Severity"
          options={leastOf(form.text("severity_min"))}
        />
        <TagsField form={form} name="agents" label="Agents" hint="all" />
      </Collapsible>
    </FormBox>
  );
}
