// Items pending for a person, in the gateway's order: gates, decisions, steps to review. The live topic
// signals changes; the list is fetched, because `can` depends on the user.
import { useEffect } from "react";
import { useApi } from "~/api/queries";
import { useRecords } from "~/live/useLive";
import type { HoldItem, WaitingItem } from "~/protocol/openapi";

export type { AllowedAction, WaitingItem } from "~/protocol/openapi";

/** All pending items (in the gateway's order), refetched whenever the live topic changed. */
export function useWaiting() {
  const query = useApi("/v1/waiting", { limit: 200 }, { every: 10_000 });
  const { items } = useRecords("waiting", "item");
  const { refetch } = query;
  // One request at a time: changes in the meantime are in the next response, and a slow gateway is not
  // pressed.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the records is the reason to refetch
  useEffect(() => void refetch({ cancelRefetch: false }), [items, refetch]);
  return query;
}

/** What a gate card needs; a waiting item is one, a hold becomes one. */
export type Gate = Pick<
  WaitingItem,
  | "session_id"
  | "agent_id"
  | "why"
  | "deadline"
  | "on_expiry"
  | "held_at"
  | "message_id"
  | "action_digest"
  | "quorum"
  | "approvals"
  | "requested_by"
> &
  Partial<
    Pick<WaitingItem, "title" | "risk" | "tool" | "recipient" | "can" | "message_type" | "sequence_number">
  >;

export function gateOfHold(hold: HoldItem): Gate {
  return { ...hold, why: hold.reason };
}
