// A hook as a form, with a sample beside it: what the mapping would make of that body is asked while one types.
import { changeHook, makeHook } from "~/acts/connections";
import type { HookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Pick, Text } from "../parts/Fields";
import { Folded } from "../parts/Folded";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { useForm } from "../parts/useForm";
import type { Fresh } from "./Hooks";
import { NEW, readHook, readMapping, SCHEMES, type Scheme, TARGETS, valuesOf } from "./mapping";
import { Trial } from "./Trial";

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
        label={hook ? `Hook ${hook.name}` : "New hook"}
        does={hook ? "Save the hook" : "Open the hook"}
        denied={denied}
        isNew={hook === null}
        onSave={save}
      >
        <Text form={form} name="name" label="Name" maxLength={100} />
        {hook === null && (
          <Pick
            form={form}
            name="scheme"
            label="The caller signs as"
            options={Object.entries(SCHEMES).map(([value, label]) => ({ value, label }))}
          />
        )}
        <Text
          form={form}
          name="intent"
          label="Intent"
          means="What is wanted. A text, or after = an expression (JMESPath) over the body."
          placeholder="=join('', ['Review ', repository.full_name])"
        />
        <div className={classes.two}>
          <Pick
            form={form}
            name="to"
            label="For"
            options={TARGETS.map((one) => ({ value: one, label: `${one === "agent" ? "an" : "a"} ${one}` }))}
          />
          <Text form={form} name="target" label="Called" placeholder="code-reviewer" />
        </div>
        <Text
          form={form}
          name="when"
          label="Only when"
          means="An expression; bodies for which it is empty or false are ignored."
          placeholder="every body"
        />
        <Folded word="Payload, session, delivery, time" open={FOLDED.some((name) => name in form.faults)}>
          <Text
            form={form}
            name="payload"
            label="Payload"
            means="An expression: what the agent gets."
            placeholder="@, the whole body"
          />
          <Text
            form={form}
            name="session"
            label="Session"
            means="An expression: calls of one key share a session."
            placeholder="each call has its own"
          />
          <Text
            form={form}
            name="delivery_id"
            label="Delivery"
            means="An expression: names a delivery where the scheme does not."
            placeholder="the scheme's own"
          />
          <Text form={form} name="window_s" label="The signed time may be off by" />
          {hook === null && (
            <Text
              form={form}
              name="secret"
              label="Secret"
              type="password"
              means="Left empty, one is made."
              placeholder="made here"
            />
          )}
        </Folded>
      </FormBox>
      {denied === undefined && (
        <Trial
          mapping={readMapping(form.values).mapping}
          scheme={form.text("scheme") as Scheme}
          onFault={(field, text) => form.setFaults({ [field]: text })}
        />
      )}
    </>
  );
}
