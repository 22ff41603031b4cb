import { expect, test } from "vitest";
import type { MessageItem } from "~/protocol/openapi";
import { between } from "./edgeMessages";

const item = (n: number, changes: Partial<MessageItem>): MessageItem => ({
  interrupt_signal: null,
  message: { cognition: { intent: `intent ${n}` } },
  message_id: `m${n}`,
  message_type: "decision_log",
  parent_inferred: false,
  parents: [],
  rewritten: false,
  sequence_number: n,
  session_id: "s1",
  state: "forwarded",
  step_id: `step${n}`,
  ...changes,
});

test("a step that follows another's step passed along the edge", () => {
  const found = between(
    [item(1, {}), item(2, {})],
    [item(5, { parents: ["step2"] }), item(6, { parents: ["other"] })],
    ["bob", "agent:bob"],
  );
  expect(found.map((one) => [one.message_id, one.how])).toEqual([["m5", "followed"]]);
});

test("what is addressed passed too, newest first, and says its text", () => {
  const sent = item(7, {
    message_type: "text",
    message: { recipient: { entity_id: "agent:bob" }, payload: { content: "hello" } },
  });
  const found = between([item(1, {}), sent], [item(5, { parents: ["step1"] })], ["bob", "agent:bob"]);
  expect(found.map((one) => one.text)).toEqual(["hello", "intent 5"]);
});

test("what is addressed to another did not", () => {
  expect(
    between([item(1, { message: { recipient: { entity_id: "agent:bobby" } } })], [], ["bob", "agent:bob"]),
  ).toEqual([]);
});

test("a shredded message is named by its type", () => {
  expect(
    between([item(1, {})], [item(2, { message: null, parents: ["step1"] })], ["bob", "agent:bob"])[0]?.text,
  ).toBe("decision log");
});
