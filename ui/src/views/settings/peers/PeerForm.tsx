// A new peer: who it is by its key, and where it can be asked.
import { addPeer } from "~/acts/connections";
import { useUrl } from "~/useUrl";
import { Long, Text } from "../parts/Fields";
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
    <FormBox form={form} label="New peer" does="Add the peer" denied={denied} isNew onSave={save}>
      <Text form={form} name="name" label="Name" maxLength={100} />
      <Long
        form={form}
        name="vkey"
        label="Key"
        rows={3}
        mono
        means="Of their log, or of a witness. Have it from a person you trust, by another way than the address."
      />
      <Text
        form={form}
        name="url"
        label="Witness address"
        means="Where our checkpoints are offered; https at a public address."
        placeholder="https://them.example.com/v1/witness/tnt_default"
      />
      <Text
        form={form}
        name="log_url"
        label="Log address"
        means="Where their log can be looked at; leave it out for a witness without a log."
        placeholder="none"
      />
    </FormBox>
  );
}
