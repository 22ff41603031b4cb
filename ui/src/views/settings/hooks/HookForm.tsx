// Form of an inbound webhook, with a dry run of the mapping on a sample body.
import { changeHook, makeHook } from "~/commands/connections";
import type { HookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Collapsible } from "../parts/Collapsible";
import { SelectField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { useForm } from "../parts/useForm";
import type { Fresh } from "./Hooks";
import { MappingDryRun } from "./MappingDryRun";
import { NEW, readHook, readMapping, SCHEMES, type Scheme, TARGETS, valuesOf } from "./mapping";

interface Props {
  hook: HookItem | null;
  denied: string | undefined;
  onSecret: (fresh: Fresh) => void;
}

const FOLDED = ["payload", "session", "delivery_id", "window_s", "secret"];

export function HookForm({ hook, denied, onSecret }: Props) {
  const [, setUrl] = useUrl();
  const form = useForm(
    `hook ${hook?.hook_id ?? "new"}`,
    hook ? valuesOf(hook) : NEW,
    hook?.updated_at ?? null,
  );
  const save = async () => {
    const read = readHook(form.values);
    if (read.faults) return form.setFaults(read.faults);
    const { name, mapping, window_s } = read.body;
    if (hook) {
      const body = { name, mapping, window_s, was: form.was };
      if (await changeHook(hook.hook_id, body, `“${name}” is saved.`, form.refused)) form.forget();
      return;
    }
    const made = await makeHook(read.body, form.refused);
    if (!made) return;
    onSecret({ hook_id: made.hook_id, secret: made.secret });
    form.forget();
    setUrl({ one: made.hook_id }, true);
  };
  return (
    <>
      <FormBox
        form={form}
        label={hook ? `Webhook ${hook.name}` : "New webhook"}
        does={hook ? "Save webhook" : "Create webhook"}
        denied={denied}
        isNew={hook === null}
        onSave={save}
      >
        <TextField form={form} name="name" label="Name" maxLength={100} />
        {hook === null && (
          <SelectField
            form={form}
            name="scheme"
            label="Signature scheme"
            options={Object.entries(SCHEMES).map(([value, label]) => ({ value, label }))}
          />
        )}
        <TextField
          form={form}
          name="intent"
          label="Intent"
          means="A text, or after = a JMESPath expression over the body."
          placeholder="=join('', ['Review ', repository.full_name])"
        />
        <div className={classes.two}>
          <SelectField
            form={form}
            name="to"
            label="Target type"
            options={TARGETS.map((one) => ({ value: one, label: `${one === "agent" ? "an" : "a"} ${one}` }))}
          />
          <TextField form={form} name="target" label="Target" placeholder="code-reviewer" />
        </div>
        <TextField
          form={form}
          name="when"
          label="Only when"
          means="An expression; calls for which it is empty or false are ignored."
          placeholder="all calls"
        />
        <Collapsible
          word="Payload, session, delivery, time"
          open={FOLDED.some((name) => name in form.faults)}
        >
          <TextField
            form={form}
            name="payload"
            label="Payload"
            means="An expression: the agent's payload."
            placeholder="@, the whole body"
          />
          <TextField
            form={form}
            name="session"
            label="Session"
            means="An expression: calls with the same value share a session."
            placeholder="a new session per call"
          />
          <TextField
            form={form}
            name="delivery_id"
            label="Delivery"
            means="An expression: delivery id, if the scheme has none."
            placeholder="from the scheme"
          />
          <TextField form={form} name="window_s" label="Timestamp tolerance" />
          {hook === null && (
            <TextField
              form={form}
              name="secret"
              label="Secret"
              type="password"
              means="If empty, one is generated."
              placeholder="generated"
            />
          )}
        </Collapsible>
      </FormBox>
      {denied === undefined && (
        <MappingDryRun
          mapping={readMapping(form.values).mapping}
          scheme={form.text("scheme") as Scheme}
          onFault={(field, text) => form.setFaults({ [field]: text })}
        />
      )}
    </>
  );
}
