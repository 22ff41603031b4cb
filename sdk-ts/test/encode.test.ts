import assert from "node:assert/strict";
import { test } from "node:test";
import { decoded, encoded, writtenInput } from "../src/encode.ts";

test("whatever is said becomes JSON, and nothing throws (S918)", () => {
  const circle: Record<string, unknown> = { n: 1n };
  circle.self = [circle];
  const throwing = { toJSON: () => assert.fail("toJSON"), ok: 1 };
  const cases: [unknown, unknown][] = [
    [12n, 12],
    [2n ** 70n, String(2n ** 70n)],
    [Number.POSITIVE_INFINITY, null],
    [-0, 0],
    [1e21, 1e21],
    [circle, { n: 1, self: ["[circular]"] }],
    [throwing, { ok: 1 }],
    [new Map([["a", new Set([1, 2])]]), { a: [1, 2] }],
    [{ error: new RangeError("far") }, { error: "RangeError: far" }],
    [new Uint8Array(5), "[5 bytes]"],
    [{ when: new Date(0), never: undefined, f: () => 1 }, { when: "1970-01-01T00:00:00.000Z" }],
  ];
  for (const [said, told] of cases) assert.deepEqual(JSON.parse(encoded(said)), told);
  for (const odd of [undefined, Symbol("s"), () => 1])
    assert.equal(typeof JSON.parse(encoded(odd)), "string");
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  assert.equal(encoded(revoked.proxy), '"[unreadable]"');
});

test("a lone surrogate leaves escaped, so the line is still UTF-8 and the gateway can name it", () => {
  assert.equal(encoded("\ud800"), '"\\ud800"');
  assert.equal(encoded("😀"), '"😀"');
});

test("what is too deep for JSON.stringify is cut, not thrown", () => {
  let deep: unknown = 1;
  for (let n = 0; n < 100_000; n++) deep = [deep];
  assert.match(encoded(deep), /\[too deep\]/);
});

test("a tool's input travels as text and comes back as data", () => {
  assert.equal(writtenInput("as it is"), "as it is");
  assert.equal(writtenInput(null), null);
  assert.deepEqual(decoded(writtenInput({ a: [1] })), { a: [1] });
  assert.equal(decoded("not JSON"), "not JSON");
  const account = {
    to: [12345678901234567890n, -9007199254740993n],
    fee: 0.1234567890123456,
    n: 9007199254740991,
  };
  const written =
    '{"to":[12345678901234567890,-9007199254740993],"fee":0.1234567890123456,"n":9007199254740991}';
  assert.deepEqual(decoded(written), account, "never another number than was approved");
});
