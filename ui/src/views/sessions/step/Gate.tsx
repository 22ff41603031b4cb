// The gate at this step: the same card as in the inbox, with the exact message and its actions.
import { useApi } from "~/api/queries";
import { GateCard } from "~/widgets/GateCard";
import { gateOfHold, useWaiting } from "~/widgets/pendingItems";
import type { StepDetails } from "./stepDetails";

export function GateHere({ step: details }: { step: StepDetails }) {
  const waiting = useWaiting();
  const holds = useApi("/v1/holds", { session_id: details.session_id, gates_only: true, limit: 200 });
  const item = waiting.data?.items.find(
    (one) => one.kind === "gate" && one.message_id === details.message_id,
  );
  const hold = holds.data?.items.find((one) => one.message_id === details.message_id);
  if (item) return <GateCard gate={item} keyed />;
  if (hold)
    return (
      <GateCard gate={{ ...gateOfHold(hold), recipient: details.recipient, tool: details.tool }} keyed />
    );
  return null;
}
