// What waits for a person, in the gateway's order: gates, decisions, steps to look at. The live topic tells
// that something changed; the list is asked, because `can` is the caller's own.
import { useEffect } from "react";
import { useAnswer } from "~/api/questions";
import { useRecords } from "~/live/useLive";
import type { HoldItem, WaitingItem } from "~/protocol/openapi";

export type { Can, WaitingItem } from "~/protocol/openapi";

/** Everything that waits (the gateway's order), asked again whenever the live topic changed. */
export function useWaiting() {
  const asked = useAnswer("/v1/waiting", { limit: 200 }, { every: 10_000 });
  const { items } = useRecords("waiting", "item");
  const { refetch } = asked;
  // One question at a time: what changes meanwhile is in the next answer, and a slow gateway is not pressed.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the records is the reason to ask
  useEffect(() => void refetch({ cancelRefetch: false }), [items, refetch]);
  return asked;
}

/** What a gate card needs to know; a waiting item is one, a hold becomes one. */
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
