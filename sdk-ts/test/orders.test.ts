import assert from "node:assert/strict";
import { test } from "node:test";
import { Cancelled } from "../src/errors.ts";
import { decisionKey, Orders, verdictKey } from "../src/orders.ts";
import { Received, verdictOf } from "../src/received.ts";

let numbers = 0;
function item(kind: string, more: Record<string, unknown> = {}): Received {
  numbers += 1;
  const told = { delivery_id: `dlv_${numbers}`, kind, sequence_number: numbers, session_id: "s", ...more };
  return Received.read(told) as Received;
}
const orders = (): Orders => new Orders("a", () => {});

test("an item counts once however often it comes, and is acknowledged again (S915)", () => {
  const mine = orders();
  const hold = item("hold");
  assert.equal(mine.take(hold), true);
  assert.equal(mine.take(hold), false);
  assert.deepEqual(mine.takeAcks(10), [hold.delivery_id, hold.delivery_id]);
  const message = item("message");
  mine.take(message);
  assert.equal(mine.take(message), false);
  assert.deepEqual(mine.takeAcks(10), [], "not before the agent has taken it");
  assert.equal(mine.nextMessage(), message);
  mine.finish(message);
  assert.deepEqual(mine.takeAcks(10), [message.delivery_id]);
});

test("a pause that was overtaken by its end does not come back (S911)", () => {
  const mine = orders();
  const [hold, resume] = [item("hold"), item("resume")];
  mine.take(resume);
  mine.take(hold);
  assert.equal(mine.isHeld("s"), false);
  mine.take(item("hold", { session_id: null }));
  assert.equal(mine.isHeld("elsewhere"), true);
  mine.hello("agt_1", [], false, null);
  assert.equal(mine.isHeld("elsewhere"), false, "the greeting is the gateway's own word");
  mine.take(item("stop"));
  assert.equal(mine.isHeld("s"), true);
  mine.close();
  assert.throws(() => mine.refuseCancelled("s", true), Cancelled);
});

test("queues are bounded: what does not fit is neither taken nor acknowledged (S915)", () => {
  const mine = orders();
  for (let n = 0; n < 1000; n++)
    assert.ok(mine.take(item("message")) && mine.take(item("inject", { body: { prompt: "p" } })));
  assert.equal(mine.take(item("message")), false);
  assert.equal(mine.take(item("inject")), false);
  assert.deepEqual(mine.takeAcks(10), []);
  assert.equal(mine.takePrompts("other").length, 0);
  assert.equal(mine.takePrompts("s").length, 1000);
  assert.equal(mine.takeMessages().length, 1000);
  assert.equal(mine.takeAcks(5000).length, 2000);
});

test("a verdict goes to who waits for it, else among the messages (S912)", () => {
  const mine = orders();
  const key = verdictKey("s", "STEP");
  mine.expect(key);
  mine.take(item("verdict", { body: { step_id: "STEP", verdict: "approved" } }));
  assert.equal(mine.answer(key)?.body.verdict, "approved");
  mine.forget(key);
  mine.take(item("verdict", { body: { step_id: "STEP", verdict: "approved" } }));
  mine.take(item("decision", { body: { decision_id: "dec_1" } }));
  assert.equal(mine.answer(decisionKey("dec_1")), null);
  assert.equal(mine.takeMessages().length, 2);
});

test("a word we do not know allows nothing (S912)", () => {
  const of = (body: Record<string, unknown>) => verdictOf(item("verdict", { body }), "pay", { amount: 1 });
  assert.deepEqual(
    [of({ verdict: "approved" }).approved, of({ verdict: "approved" }).tool_input],
    [true, { amount: 1 }],
  );
  const content = { action: { tool_call: "pay", tool_input: '{"amount":2}' } };
  assert.deepEqual(of({ verdict: "edited", content }).tool_input, { amount: 2 });
  for (const bad of [
    {},
    { verdict: "fine" },
    { verdict: "not_required" },
    { verdict: "edited" },
    { verdict: ["approved"] },
    { verdict: "edited", content: { action: { tool_call: 7 } } },
  ]) {
    const told = of(bad);
    assert.deepEqual(
      [told.approved, told.tool_call, told.tool_input],
      [false, null, null],
      JSON.stringify(bad),
    );
  }
});

test("what is no item is not read as one, and unknown members do no harm", () => {
  for (const bad of [null, 7, "x", [], {}, { delivery_id: 1, kind: "hold" }])
    assert.equal(Received.read(bad), null);
  const odd = item("message", { message: { payload: 7, meta: [], sender: "x" }, body: 3 });
  assert.deepEqual(
    [odd.text, odd.intent, odd.payload, odd.is_reminder, odd.body],
    [null, null, null, false, {}],
  );
});
