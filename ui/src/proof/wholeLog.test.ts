import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { ThoughtItem } from "~/protocol/openapi";
import { bytesOf } from "./sha256";
import { chain, leafOf, rootOf, TENANT } from "./testLog";
import { verifyThoughts } from "./thoughts";
import { type Signed, WholeCheck } from "./wholeLog";

function check(lines: string[], heads: Signed[], page = 7): WholeCheck {
  const found = new WholeCheck(TENANT, heads);
  for (let n = 0; n < lines.length; n += page)
    found.feed(
      bytesOf(
        lines
          .slice(n, n + page)
          .map((line) => `${line}\n`)
          .join(""),
      ),
    );
  found.end();
  return found;
}

const headOf = (lines: string[], size: number): Signed => ({
  size,
  root: rootOf(lines.slice(0, size).map((line, n) => leafOf(line, n + 1))),
});

describe("a whole log (S684)", () => {
  const lines = chain(50, { 20: { event_type: "plain", summary: "ascii" } });
  test("verifies to its signed size, and against earlier signed roots", () => {
    const found = check(lines, [headOf(lines, 30), headOf(lines, 50)]);
    expect(found).toMatchObject({ verified: 50, broken: null });
    expect(check(lines, [headOf(lines, 42)]).verified).toBe(42);
  });
  test.each([
    [
      "a changed body",
      21,
      "event_hash",
      (own: string[]) => own.splice(20, 1, (own[20] as string).replace("café", "cafe")),
    ],
    [
      "a changed severity",
      50,
      "log",
      (own: string[]) => own.splice(20, 1, (own[20] as string).replace('_number":9', '_number":5')),
    ],
    ["a missing event", 21, "density", (own: string[]) => own.splice(20, 1)],
    [
      "two that changed places",
      21,
      "density",
      (own: string[]) => own.splice(20, 2, own[21] as string, own[20] as string),
    ],
    ["a missing tail", 46, "density", (own: string[]) => own.splice(45)],
    ["no text", 21, "record", (own: string[]) => own.splice(20, 1, "\ud800")],
  ])("%s is the first break", (_, at, what, bend) => {
    const own = [...lines];
    bend(own);
    expect(check(own, [headOf(lines, 50)]).broken).toMatchObject({ sequence_number: at, what });
  });
  test("a recomputed chain does not give the root signed earlier", () => {
    const rebuilt = chain(50, { 10: { event_type: "never" } });
    const found = check(rebuilt, [headOf(lines, 30), headOf(rebuilt, 50)]);
    expect(found.broken).toMatchObject({ sequence_number: 30, what: "log" });
  });
  test("two roots signed over one size cannot both hold", () => {
    const rebuilt = chain(50, { 10: { event_type: "never" } });
    const found = check(lines, [headOf(lines, 50), headOf(rebuilt, 50)]);
    expect(found.broken).toMatchObject({ sequence_number: 50, what: "log" });
  });
});

interface Golden {
  session_metadata: { caller: string; session_id: string; started_at: string };
  genesis: string;
  records: { record: ThoughtItem; content_hash: string; parent_chain_hash: string; chain_hash: string }[];
  seal_root: string;
}

describe("a session's thoughts (S688)", () => {
  const path = new URL("../../../tests/vectors/golden/thought_chain.json", import.meta.url);
  const golden = JSON.parse(readFileSync(path, "utf-8")) as Golden;
  const text = (digits: string) => `sha256:${digits.replace("sha256:", "")}`;
  const items = golden.records.map(({ record, content_hash, parent_chain_hash, chain_hash }) => ({
    ...record,
    content_hash: text(content_hash),
    parent_chain_hash: text(parent_chain_hash),
    chain_hash: text(chain_hash),
    shredded_by: null as number | null,
  })) as ThoughtItem[];
  const session = {
    ...golden.session_metadata,
    genesis: text(golden.genesis),
    records: items.length,
    root: text(golden.seal_root) as string | null,
    last_chain_hash: items.at(-1)?.chain_hash ?? "",
    predecessor_chain_hash: null,
  };
  test("the golden session gives its sealed root", () => {
    expect(verifyThoughts(session, items)).toMatchObject({ valid: true, root: text(golden.seal_root) });
    expect(verifyThoughts({ ...session, root: null }, items).sentence).toContain("not sealed yet");
  });
  test("each tampering is reported at its record", () => {
    const bent = (n: number, change: Partial<ThoughtItem>) =>
      verifyThoughts(
        session,
        items.map((item, at) => (at === n ? { ...item, ...change } : item)),
      );
    expect(bent(1, { author: "agt_2" })).toMatchObject({ valid: false, first_broken_index: 1 });
    expect(bent(0, { content_hash: "none" })).toMatchObject({ first_broken_index: 0 });
    expect(bent(1, { chain_hash: items[0]?.chain_hash ?? "" })).toMatchObject({ first_broken_index: 1 });
    expect(bent(1, { index: 5 })).toMatchObject({ first_broken_index: 1 });
    expect(verifyThoughts(session, items.slice(0, -1))).toMatchObject({ valid: false });
    expect(verifyThoughts({ ...session, caller: "agt_9" }, items).sentence).toContain("genesis");
    expect(verifyThoughts({ ...session, root: session.genesis }, items).sentence).toContain("sealed");
  });
  test("shredded content leaves its hash, which is reported", () => {
    const gone = items.map((item, n) => (n === 0 ? { ...item, content: null, shredded_by: 9 } : item));
    expect(verifyThoughts(session, gone as ThoughtItem[])).toMatchObject({ valid: true, shredded: 1 });
  });
});
