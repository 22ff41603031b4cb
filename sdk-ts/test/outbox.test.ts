/** The sender against an HTTP server that does what gateways do on a bad day. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { Agent, Lost, type Rejected } from "../src/node.ts";

type Reply = { code: number; headers?: Record<string, string>; body?: string; cut?: boolean };
const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close();
});

async function gateway(
  answer: (lines: string[], n: number, path: string) => Reply,
): Promise<{ url: string; seen: string[][] }> {
  const seen: string[][] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    let body = "";
    for await (const part of request) body += part;
    const lines = body.split("\n").filter(Boolean);
    const reply = answer(lines, seen.push(lines), String(request.url));
    response.writeHead(reply.code, reply.headers).end(reply.body ?? "");
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const taken = (lines: string[]): string =>
  lines.map(() => '{"code":202,"status":"accepted","state":"forwarded"}\n').join("");
const intents = (lines: string[]): string[] => lines.map((line) => JSON.parse(line).cognition.intent);
const QUIET = { control: false, log: () => {}, key: "obs_k", data: `/nonexistent/${process.pid}` };
const FAST = { linger_s: 0.001, backoff_s: 0.001, max_backoff_s: 0.002 };

test("429 and 503 are waited out, in order, nothing twice (S919)", async () => {
  const accepted: string[] = [];
  const { url, seen } = await gateway((lines, n) => {
    if (n === 1) return { code: 429, headers: { "Retry-After": "0" } };
    if (n === 2) return { code: 503, headers: { "Retry-After": "0.01" } };
    if (n === 3)
      return { code: 200, body: `${taken(lines.slice(0, 2))}{"code":503,"reason":"not_durable"}\n` };
    if (n === 4) return { code: 200, body: '{"code": 20' };
    accepted.push(...intents(lines));
    return { code: 200, body: taken(lines) };
  });
  const agent = new Agent("a", { ...QUIET, url, delivery: FAST });
  const steps = await Promise.all([0, 1, 2, 3, 4].map((n) => agent.step(`step ${n}`)));
  assert.equal((await steps[4]?.answer({ timeout_s: 20 }))?.state, "forwarded");
  assert.deepEqual(accepted, ["step 2", "step 3", "step 4"], "the first two were judged already");
  assert.equal(seen.length, 5);
  assert.equal(await agent.close(), true);
});

test("one line too large for a request is found out alone and told; the rest goes on (S918)", async () => {
  const { url } = await gateway((lines) =>
    lines.some((line) => line.includes("huge")) ? { code: 413 } : { code: 200, body: taken(lines) },
  );
  const refused: Rejected[] = [];
  const agent = new Agent("a", { ...QUIET, url, delivery: FAST, on_reject: (one) => refused.push(one) });
  const steps = await Promise.all(["a", "b", "huge", "c"].map((one) => agent.step(one)));
  await assert.rejects(steps[2]?.answer({ timeout_s: 20 }) as Promise<unknown>, {
    name: "Rejected",
    code: 413,
  });
  for (const n of [0, 1, 3]) assert.equal((await steps[n]?.answer({ timeout_s: 20 }))?.code, 202);
  assert.deepEqual([refused.length, agent.rejections.length], [1, 1]);
  await agent.close();
});

test("without room in memory and on disk a step is lost, at once and said so (S916)", async () => {
  const logged: string[] = [];
  const options = {
    ...QUIET,
    url: "http://127.0.0.1:1",
    log: (_: string, text: string) => logged.push(text),
  };
  const agent = new Agent("a", { ...options, data: import.meta.filename, delivery: { max_queue: 3 } });
  const steps = await Promise.all([1, 2, 3, 4, 5].map((n) => agent.step(`step ${n}`)));
  assert.deepEqual([agent.outbox.lost, agent.outbox.in_memory], [2, 3]);
  await assert.rejects(steps[4]?.answer() as Promise<unknown>, Lost);
  assert.ok(
    logged.some((text) => /cannot be written/.test(text)) &&
      logged.some((text) => /messages lost so far: 1/.test(text)),
  );
  assert.equal(await agent.close(0.1), false);
  await assert.rejects(steps[0]?.answer() as Promise<unknown>, Lost);
});

test("a program without a gateway and without a disk ends all the same, and says what was lost (S920)", () => {
  const program = `
    import { Agent } from ${JSON.stringify(new URL("../src/node.ts", import.meta.url).href)};
    const agent = new Agent("a", { url: "http://127.0.0.1:1", key: "obs_k", data: ${JSON.stringify(import.meta.filename)} });
    agent.step("x", new Proxy({}, { ownKeys() { throw new Error("no"); } }));
  `;
  const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    timeout: 30_000,
  });
  assert.equal(ended.status, 0, ended.stderr);
  assert.match(ended.stderr, /cannot be written \(ENOTDIR\)[\s\S]*messages lost so far: 1/);
});

test("what comes by the inbox and is no item of it does no harm (S915)", async () => {
  let asked = 0;
  const items = [
    null,
    7,
    [],
    {},
    { delivery_id: 1 },
    { delivery_id: "dlv_1", kind: "hold", session_id: "s", sequence_number: 1 },
  ];
  const { url } = await gateway((_, __, path) => {
    if (path.endsWith("/channel")) return { code: 426 };
    const inbox = asked++ ? "not JSON" : JSON.stringify({ items });
    const body = path.includes("/inbox") ? inbox : '{"entity_id":"agt_1"}';
    return { code: 200, body };
  });
  const agent = new Agent("a", { ...QUIET, url, heartbeat_s: null, delivery: FAST });
  await agent.listen({ timeout_s: 20 });
  assert.deepEqual(
    [agent.orders.entity_id, agent.orders.isHeld("s"), agent.orders.isHeld("t")],
    ["agt_1", true, false],
  );
  await agent.close(0.1);
});

test("a key that is refused is told once, and waits for a person (S919)", async () => {
  const logged: [string, string][] = [];
  const { url, seen } = await gateway(() => ({ code: 401 }));
  const agent = new Agent("a", {
    ...QUIET,
    url,
    log: (...told) => logged.push(told),
    delivery: { ...FAST, max_backoff_s: 30 },
  });
  const step = await agent.step("x");
  await assert.rejects(step.answer({ timeout_s: 0.2 }), { name: "NotAnswered" });
  assert.equal(seen.length, 1);
  const errors = logged.filter(([level, text]) => level === "error" && /refuses this key/.test(text));
  assert.equal(errors.length, 1);
  assert.ok(!logged.some(([, text]) => text.includes("obs_k")));
  await agent.close(0.1);
});

test("the key is in a header, never in an address; a redirect does not carry it elsewhere (S922)", async () => {
  const stolen: (string | undefined)[] = [];
  const thief = createServer((request, response) => {
    stolen.push(request.headers.authorization);
    response.end();
  });
  servers.push(thief);
  await new Promise<void>((resolve) => thief.listen(0, "127.0.0.1", resolve));
  const there = `http://127.0.0.1:${(thief.address() as AddressInfo).port}/`;
  const { url, seen } = await gateway(() => ({ code: 307, headers: { Location: there } }));
  const agent = new Agent("a", { ...QUIET, url, delivery: { ...FAST, max_backoff_s: 30 } });
  const step = await agent.step("x");
  await assert.rejects(step.answer({ timeout_s: 0.2 }), { name: "NotAnswered" });
  assert.ok(seen.length > 0);
  assert.deepEqual(stolen, []);
  await agent.close(0.1);
});
