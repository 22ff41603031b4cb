import { Empty } from "~/widgets/Panel";

export function Drift() {
  return <Empty>This board is being built.</Empty>;
}
