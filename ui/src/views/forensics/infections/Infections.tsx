import { Empty } from "~/widgets/Panel";

export function Infections() {
  return <Empty>This board is being built.</Empty>;
}
