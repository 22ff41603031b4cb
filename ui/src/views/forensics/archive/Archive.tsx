import { Empty } from "~/widgets/Panel";

export function Archive() {
  return <Empty>This board is being built.</Empty>;
}
