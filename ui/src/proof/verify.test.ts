import { describe, expect, test } from "vitest";
import type { Memory, Remembered } from "./browserMemory";
import { numberOf } from "./event";
import { otherThan } from "./recordMatch";
import { chain, idOf, Log, signer, TENANT } from "./testLog";
import { type Proof, verifyEvent } from "./verify";

function remembering(): Memory & { known: Remembered | null } {
  return {
    known: null,
    recall() {
      return this.known;
    },
    keep(_, known) {
      this.known = known;
    },
  };
}

const brokenAt = (proof: Proof) => proof.steps.find((step) => step.outcome === "broken");

describe("one event (S682, S683)", () => {
  test("is verified from bytes, tiles and checkpoint, and key and checkpoint are remembered", async () => {
    const log = new Log(chain(300), await signer());
    const memory = remembering();
    const first = await verifyEvent(idOf(7), log, memory);
    expect(first.state).toBe("verified");
    expect(first.steps.map((step) => step.outcome)).toEqual([
      "held",
      "held",
      "held",
      "warned",
      "unchecked",
      "unchecked",
    ]);
    expect(first.path.length).toBe(9);
    expect(memory.known).toMatchObject({ vkey: log.by.vkey, size: 300 });
    const longer = new Log(chain(310), log.by);
    const second = await verifyEvent(idOf(305), longer, memory);
    expect(second.state).toBe("verified");
    expect(second.steps.slice(2, 5).map((step) => step.outcome)).toEqual(["held", "held", "held"]);
    expect(numberOf(idOf(305))).toBe(305);
  });

  test("a tampered record, tile, size or signature is broken at its step", async () => {
    const [by, other] = [await signer(), await signer()];
    const cases: [string, string, (log: Log) => void][] = [
      [
        "record",
        "event_hash of event 7",
        (log) => {
          log.lines[6] = (log.lines[6] as string).replace("café 7", "cafe 7");
        },
      ],
      [
        "path",
        "does not lead to the root",
        (log) => {
          log.lines[6] = (log.lines[6] as string).replace('_number":9', '_number":5');
        },
      ],
      [
        "path",
        "shorter",
        (log) => {
          log.tile = async () => new Uint8Array(32);
        },
      ],
      [
        "signature",
        "is wrong",
        (log) => {
          log.checkpoint = async () => (await log.note()).replace(/\u2014 (\S+) (.{12})../, "\u2014 $1 $2zz");
        },
      ],
      [
        "signature",
        "did not sign",
        (log) => {
          log.checkpoint = () => log.note(log.size, [other]);
        },
      ],
      [
        "signature",
        "another log",
        (log) => {
          log.checkpoint = async () => (await log.note()).replaceAll(TENANT, "tnt_2");
        },
      ],
    ];
    for (const [step, words, bend] of cases) {
      const log = new Log(chain(40), by);
      bend(log);
      const memory = remembering();
      const proof = await verifyEvent(idOf(7), log, memory);
      expect(proof.state, words).toBe("broken");
      expect(brokenAt(proof)?.id, words).toBe(step);
      expect(brokenAt(proof)?.sentence).toContain(words);
      expect(memory.known).toBeNull();
    }
  });

  test("a fork and a rollback are detected from what was remembered", async () => {
    const by = await signer();
    const memory = remembering();
    await verifyEvent(idOf(7), new Log(chain(40), by), memory);
    const forked = await verifyEvent(
      idOf(7),
      new Log(chain(60, { 30: { event_type: "other" } }), by),
      memory,
    );
    expect(brokenAt(forked)).toMatchObject({
      id: "before",
      sentence: expect.stringContaining("two histories"),
    });
    const shorter = await verifyEvent(idOf(7), new Log(chain(39), by), memory);
    expect(brokenAt(shorter)).toMatchObject({
      id: "before",
      sentence: expect.stringContaining("rolled back"),
    });
    expect(memory.known?.size).toBe(40);
  });

  test("another key is trusted only with the old key's signature over the event that names it", async () => {
    const [old, next] = [await signer(), await signer()];
    const memory = remembering();
    await verifyEvent(idOf(7), new Log(chain(40), old), memory);
    const rotationEvent = { event_type: "log_key_rotated", vkey: next.vkey, previous_vkeys: [old.vkey] };
    const log = new Log(chain(60, { 50: rotationEvent }), next);
    [log.rotated, log.since] = [[{ vkey: old.vkey, since_sequence: 0 }], 50];
    log.over = await log.note(60, [next]);
    const refused = await verifyEvent(idOf(7), log, memory);
    expect(brokenAt(refused)).toMatchObject({
      id: "key",
      sentence: expect.stringContaining("did not sign the change"),
    });
    log.over = await log.note(60, [old, next]);
    const followed = await verifyEvent(idOf(7), log, memory);
    expect(followed.state).toBe("verified");
    expect(followed.steps[3]).toMatchObject({
      outcome: "warned",
      sentence: expect.stringContaining("1 rotation is proven"),
    });
    expect(memory.known?.vkey).toBe(next.vkey);
    const silent = new Log(chain(60, { 50: rotationEvent }), await signer());
    expect(brokenAt(await verifyEvent(idOf(7), silent, memory))?.sentence).toContain(
      "no longer names the old one",
    );
  });

  test("witnesses count only by their signatures", async () => {
    const log = new Log(chain(40), await signer());
    const witness = { name: "auditor", signer: await signer("witness.test/w", 4) };
    log.cosigners = [witness];
    const memory = remembering();
    const proof = await verifyEvent(idOf(7), log, memory);
    // Whom the gateway calls a witness for the first time may be the gateway itself.
    expect(proof.steps[5]).toMatchObject({
      outcome: "warned",
      sentence: expect.stringMatching(/^Cosigned by auditor at.*new to this browser/),
    });
    expect((await verifyEvent(idOf(7), log, memory)).steps[5]).toMatchObject({
      outcome: "held",
      sentence: expect.stringMatching(/^Cosigned by auditor at/),
    });
    log.cosigners = [{ ...witness, lies: true }];
    expect(brokenAt(await verifyEvent(idOf(7), log, remembering()))).toMatchObject({ id: "witnesses" });
  });

  test("two proofs at once: the slower is no rollback, and the newer checkpoint is kept", async () => {
    const by = await signer();
    const memory = remembering();
    await verifyEvent(idOf(7), new Log(chain(40), by), memory);
    const slow = new Log(chain(50), by);
    const tile = slow.tile.bind(slow);
    let once = true;
    slow.tile = async (...asked) => {
      if (once) {
        once = false;
        await verifyEvent(idOf(7), new Log(chain(60), by), memory);
      }
      return tile(...asked);
    };
    expect((await verifyEvent(idOf(7), slow, memory)).state).toBe("verified");
    expect(memory.known?.size).toBe(60);
  });

  test("bytes that are not text are rejected, and a malformed response proves nothing", async () => {
    const log = new Log(chain(40), await signer());
    const records = log.records.bind(log);
    log.records = async (...asked) => Uint8Array.from([0xef, 0xbb, 0xbf, ...(await records(...asked))]);
    expect(brokenAt(await verifyEvent(idOf(7), log, remembering()))).toMatchObject({ id: "record" });
    const odd = new Log(chain(40), log.by);
    odd.witnesses = async () => [{ name: "w", vkey: null as unknown as string }];
    const memory = remembering();
    const proof = await verifyEvent(idOf(7), odd, memory);
    expect(proof.state).toBe("unchecked");
    expect(proof.steps.at(-1)?.sentence).toContain("could not be parsed");
    expect(memory.known).toBeNull();
  });

  test("a proof must be of what is shown", () => {
    const record = JSON.parse(
      chain(1, { 1: { event_type: "message_delivered", message_id: "msg_1" } })[0] ?? "",
    );
    expect(otherThan(record, undefined)).toBeNull();
    expect(otherThan(record, { event: structuredClone(record), body: { message_id: "msg_1" } })).toBeNull();
    expect(otherThan(record, { body: { message_id: "msg_2" } })).toContain("its message id is another");
    expect(otherThan(record, { body: { root: null } })).toContain("its root is another");
    for (const bent of [
      { ...record, attributes: { ...record.attributes, "av.message.digest": "sha256:00" } },
      { ...record, severity_number: 9.5 },
      { ...record, severity_number: undefined },
      null,
    ])
      expect(otherThan(record, { event: bent })).toContain("not the one shown here");
  });

  test("what cannot be fetched is not called broken", async () => {
    const log = new Log(chain(40), await signer());
    expect((await verifyEvent("evt_none", log, remembering())).state).toBe("unchecked");
    expect((await verifyEvent(idOf(41), log, remembering())).steps[0]?.sentence).toContain("No audit event");
  });
});
