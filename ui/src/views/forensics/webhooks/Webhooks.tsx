import { Empty } from "~/widgets/Panel";

export function Webhooks() {
  return <Empty>This board is being built.</Empty>;
}
