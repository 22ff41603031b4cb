// Form of a new peer: its key and its URLs.
import { addPeer } from "~/commands/connections";
import { useUrl } from "~/useUrl";
import { TextAreaField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import { useForm } from "../parts/useForm";
import { NEW, readPeer } from "./peers";

export function PeerForm({ denied }: { denied: string | undefined }) {
  const [, setUrl] = useUrl();
  const form = useForm("peer new", NEW);
  const save = async () => {
    const read = readPeer(form.values);
    if (read.faults) return form.setFaults(read.faults);
    const made = await addPeer(read.body, form.refused);
    if (!made) return;
    form.forget();
    setUrl({ one: made.peer_id }, true);
  };
  return (
    <FormBox form={form} label="New peer" does="Add peer" denied={denied} isNew onSave={save}>
      <TextField form={form} name="name" label="Name" maxLength={100} />
      <TextAreaField
        form={form}
        name="vkey"
        label="Key"
        rows={3}
        mono
        means="Key of their log or witness. Get it from a person you trust, through another channel."
      />
      <TextField
        form={form}
        name="url"
        label="Witness URL"
        means="Where our checkpoints are submitted; https at a public address."
        placeholder="https://them.example.com/v1/witness/tnt_default"
      />
      <TextField
        form={form}
        name="log_url"
        label="Log URL"
        means="Where their log can be read; leave empty for a witness without a log."
        placeholder="none"
      />
    </FormBox>
  );
}
