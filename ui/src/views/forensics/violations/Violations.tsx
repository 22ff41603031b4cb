import { Empty } from "~/widgets/Panel";

export function Violations() {
  return <Empty>This board is being built.</Empty>;
}
