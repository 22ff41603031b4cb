// An exporter as a form. Left empty, the headers that are kept stay; another host gets none of them.
import { changeExporter, makeExporter } from "~/acts/connections";
import { useAnswer } from "~/api/questions";
import type { ExporterItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Long, Pick, Some, Text, Words } from "../parts/Fields";
import { Folded } from "../parts/Folded";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { useForm } from "../parts/useForm";
import { isElsewhere, leastOf, NEW, readExporter, valuesOf } from "./exporters";

export function ExporterForm({ item, denied }: { item: ExporterItem | null; denied: string | undefined }) {
  const [, setUrl] = useUrl();
  const channels = useAnswer("/v1/webhooks/out");
  const form = useForm(
    `exporter ${item?.exporter_id ?? "new"}`,
    item ? valuesOf(item) : NEW,
    item?.updated_at ?? null,
  );
  // Not an event of the record: a step that ends its task, told to webhooks only.
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
      does={item ? "Save the exporter" : "Send from now on"}
      denied={denied}
      isNew={item === null}
      onSave={save}
    >
      <Text form={form} name="name" label="Name" maxLength={100} />
      <Text
        form={form}
        name="url"
        label="URL"
        means="Without a path, http means /v1/logs there."
        placeholder="https://otlp.example.com"
      />
      <div className={classes.two}>
        <Pick
          form={form}
          name="protocol"
          label="Way"
          options={[
            { value: "http", label: "OTLP over http" },
            { value: "grpc", label: "OTLP over gRPC" },
          ]}
        />
        {item === null && (
          <Pick
            form={form}
            name="from"
            label="Beginning"
            options={[
              { value: "now", label: "with what comes now" },
              { value: "start", label: "at the first event" },
            ]}
          />
        )}
      </div>
      <Long
        form={form}
        name="headers"
        label="Headers"
        rows={2}
        mono
        means={
          item && item.headers.length > 0
            ? `Kept: ${item.headers.join(", ")}. Left empty they stay; written anew they are all there are.`
            : "One a line: authorization: Bearer …. Kept, and never shown again."
        }
      />
      {moves && (
        <p className={classes.note}>
          ! Another host is not sent the headers of the last one: write them anew.
        </p>
      )}
      <Folded
        word="Only some events"
        open={["event_types", "severity_min", "agents"].some((name) => name in form.faults)}
      >
        <Some form={form} name="event_types" label="Events" of={events} hint="all" />
        <Pick form={form} name="severity_min" label="Severity" options={leastOf(form.text("severity_min"))} />
        <Words form={form} name="agents" label="Agents" hint="all" />
      </Folded>
    </FormBox>
  );
}
