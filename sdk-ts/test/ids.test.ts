import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { hex, sha1, sha256 } from "../src/hash.ts";
import {
  canonicalId,
  newId,
  spanIdOf,
  stepName,
  stepOfName,
  timestamp,
  traceIdOfParent,
  traceIdOfSession,
} from "../src/ids.ts";

test("both hashes are Node's own for every length around a block", () => {
  for (let length = 0; length <= 200; length++) {
    const bytes = Uint8Array.from({ length }, (_, n) => (n * 7 + length) % 256);
    assert.equal(hex(sha256(bytes)), createHash("sha256").update(bytes).digest("hex"));
    assert.equal(hex(sha1(bytes)), createHash("sha1").update(bytes).digest("hex"));
  }
});

test("an id is a UUIDv7 of now, and no two are alike", () => {
  const ids = Array.from({ length: 1000 }, newId);
  assert.equal(new Set(ids).size, 1000);
  for (const id of ids)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const ms = Number.parseInt((ids[0] as string).replaceAll("-", "").slice(0, 12), 16);
  assert.ok(Math.abs(ms - Date.now()) < 60_000);
});

test("names, spans and traces are computed as the gateway does (values of the Python SDK)", () => {
  const uuid = "a1b2c3d4-e5f6-7890-abcd-ef1234567890";
  assert.equal(spanIdOf("msg_1"), "116b88f173007be5");
  assert.equal(traceIdOfSession("ses_x"), "d624ce67beed5defa2f27863fb1d173c");
  assert.equal(traceIdOfSession(uuid), uuid.replaceAll("-", ""));
  assert.equal(canonicalId(uuid.toUpperCase().replaceAll("-", "")), uuid);
  assert.equal(canonicalId("Step-1"), "Step-1");
  assert.equal(stepName("ses", uuid), uuid);
  assert.equal(stepName("ses", "one/two"), "ses/one/two");
  assert.equal(stepOfName("ses/one/two"), "one/two");
  assert.equal(stepOfName(uuid), uuid);
});

test("a traceparent that the standard wants ignored is ignored", () => {
  const [trace, span] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  assert.equal(traceIdOfParent(`00-${trace}-${span}-01`), trace);
  assert.equal(traceIdOfParent(`01-${trace}-${span}-01-more`), trace);
  for (const bad of [
    `ff-${trace}-${span}-01`,
    `00-${trace}-${span}-01-more`,
    `00-${"0".repeat(32)}-${span}-01`,
    "",
    "x",
  ])
    assert.equal(traceIdOfParent(bad), null);
});

test("a time has nine digits and a zone", () => {
  assert.match(timestamp(), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
});
