import { Empty } from "~/widgets/Panel";

export function Settings() {
  return <Empty>This page is being built.</Empty>;
}
