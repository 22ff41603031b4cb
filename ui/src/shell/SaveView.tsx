// Saves the present address under a name. Sharing requires the operator role; the gateway enforces it too.
import { Button, Checkbox, Modal, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useMay } from "~/widgets/users";
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
  // At once, not after the dialog has slid in: the user is already typing.
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
        description={`Saves the whole state: ${here}`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problem}
        maxLength={100}
        data-autofocus
      />
      {shares && (
        <Checkbox
          mt={12}
          label="Shared with everyone in this tenant"
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
