import { Empty } from "~/widgets/Panel";

export function Trail() {
  return <Empty>This board is being built.</Empty>;
}
