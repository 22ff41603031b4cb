import { Empty } from "~/widgets/Panel";

export function Message() {
  return <Empty>This page is being built.</Empty>;
}
