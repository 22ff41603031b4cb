import { Empty } from "~/widgets/Panel";

export function Policies() {
  return <Empty>This board is being built.</Empty>;
}
