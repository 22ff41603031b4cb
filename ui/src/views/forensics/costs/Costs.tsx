import { Empty } from "~/widgets/Panel";

export function Costs() {
  return <Empty>This board is being built.</Empty>;
}
