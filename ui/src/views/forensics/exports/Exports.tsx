import { Empty } from "~/widgets/Panel";

export function Exports() {
  return <Empty>This board is being built.</Empty>;
}
