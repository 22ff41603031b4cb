import { Empty } from "~/widgets/Panel";

export function Audit() {
  return <Empty>This board is being built.</Empty>;
}
