// Redelivery: sends an outbound delivery again under its original id.
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { runCommand } from "./session";

export function redeliverDelivery(endpoint_id: string, delivery_id: string, name: string) {
  return runCommand(
    "Redelivering",
    () =>
      send("POST /v1/webhooks/out/{endpoint_id}/replay", { params: { endpoint_id }, body: { delivery_id } }),
    ({ replayed }) => ({
      text: replayed
        ? `Redelivered to ${name} under the same id; a receiver that deduplicates by id drops it.`
        : `Nothing to redeliver: ${name} has not reached it yet.`,
    }),
  ).finally(() => refetch("/v1/webhooks", "/v1/dead-letters"));
}
