// Keep the present address under a name. Sharing is an operator's matter; the gateway holds to it too.
import { Button, Checkbox, Modal, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useMay } from "~/widgets/people";
import { show } from "./overlays";
import { saveView, useHere } from "./saved";

export function SaveView({ opened }: { opened: boolean }) {
  return (
    <Modal opened={opened} onClose={() => show(null)} title="Save this view" size={420}>
      {opened && <Naming />}
    </Modal>
  );
}

function Naming() {
  const here = useHere();
  const shares = useMay("operate");
  const [name, setName] = useState("");
  const [shared, setShared] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  // At once, not after the dialog has slid in: whoever asked for it is typing already.
  useEffect(() => field.current?.focus(), []);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    const refused = await saveView(name.trim(), here, shared);
    setProblem(refused);
    if (refused === null) show(null);
  };
  return (
    <form onSubmit={save}>
      <TextInput
        ref={field}
        label="Name"
        description={`Keeps the whole state: ${here}`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problem}
        maxLength={100}
        data-autofocus
      />
      {shares && (
        <Checkbox
          mt={12}
          label="Shared with everybody in this tenant"
          checked={shared}
          onChange={(event) => setShared(event.currentTarget.checked)}
        />
      )}
      <Button type="submit" mt={16} disabled={name.trim() === ""}>
        Save
      </Button>
    </form>
  );
}
