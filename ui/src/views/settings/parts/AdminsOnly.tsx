// Notice for settings only an admin may read: why, who can, and how.
import { Empty } from "~/widgets/Panel";

interface Props {
  denied: string;
  what: string;
  because: string;
  command: string;
}

export function AdminsOnly({ denied, what, because, command }: Props) {
  return (
    <Empty command={command}>
      {denied} {what} are shown to admins only: {because}. Ask one, or with an admin's key on the command
      line:
    </Empty>
  );
}
