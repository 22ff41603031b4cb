// The gate at this step: the same card as in the inbox, with the exact message and three answers.
import { useAnswer } from "~/api/questions";
import { GateCard } from "~/widgets/GateCard";
import { gateOfHold, useWaiting } from "~/widgets/waiting";
import type { Told } from "./told";

export function GateHere({ told }: { told: Told }) {
  const waiting = useWaiting();
  const holds = useAnswer("/v1/holds", { session_id: told.session_id, gates_only: true, limit: 200 });
  const item = waiting.data?.items.find((one) => one.kind === "gate" && one.message_id === told.message_id);
  const hold = holds.data?.items.find((one) => one.message_id === told.message_id);
  if (item) return <GateCard gate={item} keyed />;
  if (hold)
    return <GateCard gate={{ ...gateOfHold(hold), recipient: told.recipient, tool: told.tool }} keyed />;
  return null;
}
