// A new redaction rule, tried on the sample while it is written.
import { addRedaction } from "~/acts/settings";
import { useUrl } from "~/useUrl";
import { Pick, Text } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import { useForm } from "../parts/useForm";
import { NEW, readRedaction } from "./rules";
import { Trial } from "./Trial";

export function RedactionForm({ kinds }: { kinds: Record<string, string> }) {
  const [, setUrl] = useUrl();
  const form = useForm("redaction new", NEW);
  const type = form.text("type");
  const read = readRedaction(form.values);
  const save = async () => {
    if (read.faults) return form.setFaults(read.faults);
    if (!(await addRedaction(read.body, form.refused))) return;
    form.forget();
    setUrl({ one: null });
  };
  return (
    <>
      <FormBox
        form={form}
        label="New redaction rule"
        does="Redact from now on"
        denied={undefined}
        isNew
        onSave={save}
      >
        <Pick
          form={form}
          name="type"
          label="By"
          options={[
            { value: "builtin", label: "a kind of ours" },
            { value: "pattern", label: "a pattern of your own" },
            { value: "field", label: "a place in the message" },
          ]}
        />
        {type === "builtin" ? (
          <Pick
            form={form}
            name="kind"
            label="Kind"
            means={kinds[form.text("kind")]}
            options={Object.keys(kinds).map((name) => ({ value: name, label: name.replaceAll("_", " ") }))}
          />
        ) : (
          <Text
            form={form}
            name="name"
            label="Name"
            means="Stands in place of what is taken out: small letters, digits, _ . -"
            placeholder="acme_no"
          />
        )}
        {type === "pattern" && (
          <Text
            form={form}
            name="pattern"
            label="Pattern"
            means="A regular expression; each repeat needs an end: {1,64} instead of +."
            placeholder="ACME-[0-9]{6}"
          />
        )}
        {type === "field" && (
          <Text
            form={form}
            name="path"
            label="Place"
            means="Names with dots, * for any of them; it goes on inside JSON that travels as text."
            placeholder="action.tool_input.password"
          />
        )}
        <Text form={form} name="note" label="Why" placeholder="for whoever comes later" maxLength={500} />
      </FormBox>
      <Trial rule={read.body} onFault={(faults) => form.setFaults(faults)} />
    </>
  );
}
