import { Empty } from "~/widgets/Panel";

export function Log() {
  return <Empty>This board is being built.</Empty>;
}
