import assert from "node:assert/strict";
import { test } from "node:test";
import { retryAfterS, unsent } from "../src/client.ts";
import { backoffS, DELIVERY } from "../src/delivery.ts";
import { ChangeNotifier, until } from "../src/waiting.ts";

test("who waits longest is woken first", async () => {
  const changes = new ChangeNotifier();
  const order: number[] = [];
  let open = false;
  const waits = [1, 2, 3].map((n) => until(changes, () => open).then(() => order.push(n)));
  changes.notify();
  open = true;
  changes.notify();
  await Promise.all(waits);
  assert.deepEqual(order, [1, 2, 3]);
});

test("a wait ends by its time with what is true then, and by its signal with the signal's reason", async () => {
  const changes = new ChangeNotifier();
  assert.equal(await until(changes, () => false, { timeout_s: 0 }), false);
  assert.equal(await until(changes, () => true, { timeout_s: 0 }), true);
  const stop = new AbortController();
  const waiting = until(changes, () => false, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(
    until(changes, () => true, { signal: stop.signal }),
    /enough/,
  );
});

test("Retry-After is seconds or a date, and never a year (S919)", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const cases: [string | null, number | undefined][] = [
    ["2", 2],
    ["0", 0],
    ["-5", 0],
    ["99999999", 600],
    ["Thu, 01 Jan 2026 00:00:30 GMT", 30],
    ["soon", undefined],
    ["", undefined],
    [null, undefined],
  ];
  for (const [header, seconds] of cases) assert.equal(retryAfterS(header, now), seconds, String(header));
});

test("the gateway is left alone as long as it asked for, else longer each time, and never all at once (S919)", () => {
  const patient = { reason: "", retry_after_s: 4 };
  assert.deepEqual(
    [backoffS(DELIVERY, 9, patient, () => 0), backoffS(DELIVERY, 9, patient, () => 1)],
    [4, 5],
  );
  const away = { reason: "" };
  assert.deepEqual(
    [1, 2, 3, 50].map((n) => backoffS(DELIVERY, n, away, () => 1)),
    [0.25, 0.5, 1, 30],
  );
  assert.equal(
    backoffS(DELIVERY, 1, away, () => 0),
    0.125,
  );
  assert.equal(
    backoffS(DELIVERY, 1, unsent(401, null), () => 1),
    30,
  );
  assert.ok(unsent(429, "1").busy && unsent(403, null).key_refused && unsent(413, null).refused === 413);
});
