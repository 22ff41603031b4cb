// What only an admin may even read: said plainly, with who can and how.
import { Empty } from "~/widgets/Panel";

export function AdminsOnly({ denied, what, command }: { denied: string; what: string; command: string }) {
  return (
    <Empty command={command}>
      {denied} {what} are shown to admins only: what is looked for may itself be a secret. Ask one, or with an
      admin's key on the terminal:
    </Empty>
  );
}
