import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Files, fileStem } from "../src/node/files.ts";
import { FREE, isAlive, SELF } from "../src/node/owner.ts";

const [URL, MAX_CHARS] = ["http://gateway.example", 10_000];
const made: string[] = [];
after(() => {
  for (const folder of made) rmSync(folder, { recursive: true });
});

function files(): Files {
  const folder = mkdtempSync(join(tmpdir(), "spool-"));
  made.push(folder);
  return new Files(folder, () => {});
}

const TWO = `zwei ü ${"x".repeat(20)}`;

test("lines leave in the order they came, and what was sent stays sent over a restart (S917)", async () => {
  const all = files();
  const first = all.create("a", URL, MAX_CHARS);
  first.append(["one", TWO, "three"]);
  assert.deepEqual(first.peek(2, 1000), ["one", TWO]);
  first.advance(1);
  first.release();
  const [again] = (await all.adopt("a", URL, MAX_CHARS)).found;
  assert.equal(again?.peek(10, 1)[0], TWO, "at least one, however long it is");
  assert.deepEqual(again?.peek(10, 1000), [TWO, "three"]);
  again?.advance(2);
  assert.equal(again?.pending, false);
  again?.release();
  assert.deepEqual(readdirSync(all.place), []);
});

test("of two who take over, one gets it; what lives or is meant for another is let be (S917)", async () => {
  const all = files();
  const living = all.create("a", URL, MAX_CHARS);
  living.append(["mine"]);
  for (const url of [URL, "http://other.example"]) {
    const left = all.create("a", url, MAX_CHARS);
    left.append([url]);
    left.release();
  }
  const other = all.create("a-1", URL, MAX_CHARS);
  other.append(["of another name"]);
  other.release();
  writeFileSync(join(all.place, `a-${FREE}.0123456789abcdef.jsonl`), "not a spool\n");
  const found = await Promise.all([all.adopt("a", URL, MAX_CHARS), all.adopt("a", URL, MAX_CHARS)]);
  assert.deepEqual(
    found.flatMap((one) => one.found).map((one) => one.peek(9, 999)),
    [[URL]],
  );
  assert.equal(readdirSync(all.place).length, 5, "nothing that is not ours was removed");
});

test("half a line is dropped, the whole ones before it are not (S917)", async () => {
  const all = files();
  const left = all.create("a", URL, MAX_CHARS);
  left.append(["one"]);
  appendFileSync(left.place, '{"half');
  left.release();
  const [again] = (await all.adopt("a", URL, MAX_CHARS)).found;
  assert.deepEqual(again?.peek(9, 999), ["one"]);
  again?.advance(1);
  assert.deepEqual(again?.peek(9, 999), []);
  assert.equal(again?.pending, false);
});

test("an owner lives by its process here, elsewhere by the file's age (S917)", async () => {
  assert.ok(isAlive(SELF, 1e9));
  const [pid, , where] = SELF.split("-");
  assert.ok(!isAlive(`${pid}-1-${where}`, 0), "a later process with the same id is another one");
  const dead = spawnSync(process.execPath, ["-e", ""]).pid;
  assert.ok(!isAlive(`${dead}-1-${where}`, 0));
  assert.ok(isAlive("1-1-elsewhere", 1000) && !isAlive("1-1-elsewhere", 100_000) && !isAlive(FREE, 0));
  const all = files();
  const left = all.create("a", URL, MAX_CHARS);
  left.append(["one"]);
  const foreign = left.place.replace(SELF, "1-1-elsewhere");
  renameSync(left.place, foreign);
  assert.deepEqual(await all.adopt("a", URL, MAX_CHARS), { found: [], again_ms: 60_000 });
  utimesSync(foreign, 0, 0);
  assert.equal((await all.adopt("a", URL, MAX_CHARS)).found.length, 1);
});

test("room is bounded, and two names never share a file", () => {
  const spool = files().create("a", URL, 100);
  assert.equal(spool.fits(["x".repeat(10), "x".repeat(10), "x".repeat(90)]), 2);
  spool.release();
  assert.notEqual(fileStem("team/a"), fileStem("team_a"));
  assert.match(fileStem("../../etc/passwd\0"), /^[A-Za-z0-9._-]+$/);
});
