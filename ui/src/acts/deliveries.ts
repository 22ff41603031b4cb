// What an admin does to what was sent to somebody outside: send it once more, under the id it had.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import { act } from "./acts";

export function sendAgain(endpoint_id: string, delivery_id: string, name: string) {
  return act(
    "Sending it once more",
    () =>
      send("POST /v1/webhooks/out/{endpoint_id}/replay", { params: { endpoint_id }, body: { delivery_id } }),
    ({ replayed }) => ({
      text: replayed
        ? `It goes to ${name} once more, under the same id; a receiver that keeps ids drops it.`
        : `Nothing was to be sent: ${name} has not come to it yet.`,
    }),
  ).finally(() => askAgain("/v1/webhooks", "/v1/dead-letters"));
}
