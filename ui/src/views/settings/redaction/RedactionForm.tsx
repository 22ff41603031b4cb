// Form of a new redaction rule, with a dry run while typing.
import { addRedaction } from "~/commands/settings";
import { useUrl } from "~/useUrl";
import { SelectField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import { useForm } from "../parts/useForm";
import { RedactionDryRun } from "./RedactionDryRun";
import { NEW, readRedaction } from "./rules";

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
        does="Create rule"
        denied={undefined}
        isNew
        onSave={save}
      >
        <SelectField
          form={form}
          name="type"
          label="Type"
          options={[
            { value: "builtin", label: "built-in kind" },
            { value: "pattern", label: "custom pattern" },
            { value: "field", label: "message field" },
          ]}
        />
        {type === "builtin" ? (
          <SelectField
            form={form}
            name="kind"
            label="Kind"
            means={kinds[form.text("kind")]}
            options={Object.keys(kinds).map((name) => ({ value: name, label: name.replaceAll("_", " ") }))}
          />
        ) : (
          <TextField
            form={form}
            name="name"
            label="Name"
            means="Replaces the redacted text: lower-case letters, digits, _ . -"
            placeholder="acme_no"
          />
        )}
        {type === "pattern" && (
          <TextField
            form={form}
            name="pattern"
            label="Pattern"
            means="A regular expression; each repeat needs an end: {1,64} instead of +."
            placeholder="ACME-[0-9]{6}"
          />
        )}
        {type === "field" && (
          <TextField
            form={form}
            name="path"
            label="Path"
            means="Names separated by dots, * for any name; also matches inside JSON strings."
            placeholder="action.tool_input.password"
          />
        )}
        <TextField form={form} name="note" label="Note" placeholder="why this rule exists" maxLength={500} />
      </FormBox>
      <RedactionDryRun rule={read.body} onFault={(faults) => form.setFaults(faults)} />
    </>
  );
}
