// Every signed checkpoint, newest first: log size, root, cosigners. A selected one shows its exact note, and
// can be compared with the newest in this browser.
import { Button } from "@mantine/core";
import { useState } from "react";
import { browserMemory } from "~/proof/browserMemory";
import { Broken } from "~/proof/event";
import { believedKey } from "~/proof/key";
import { BadNote, lineOf, NO_ED25519, readCheckpoint, readKey, verifies } from "~/proof/note";
import { http } from "~/proof/source";
import { BadTree, goesOnFrom } from "~/proof/tree";
import { signedNow } from "~/proof/verify";
import type { CheckpointItem, LogAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Id } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import { usePaged } from "../usePaged";
import classes from "./Log.module.css";

const COLUMNS: readonly Column<CheckpointItem>[] = [
  { id: "size", title: "Entries", cell: (one) => one.size.toLocaleString("en"), width: 90 },
  { id: "at", title: "Signed", cell: (one) => <Ago at={one.signed_at} />, width: 90 },
  { id: "root", title: "Root", cell: (one) => <Id id={one.root} length={16} />, from: 420 },
  {
    id: "witnesses",
    title: "Cosigned by",
    cell: (one) => one.witnesses.map((witness) => short(witness.name)).join(", ") || "–",
    from: 300,
  },
];

const short = (name: string) => (name.length > 26 ? `${name.slice(0, 12)}…${name.slice(-12)}` : name);

const QUERY = { limit: 100 };
const bySize = (one: CheckpointItem) => one.size;

export function Checkpoints({ log }: { log: LogAnswer }) {
  const [url, setUrl] = useUrl();
  const { first, rows, more, fetchMore } = usePaged("/v1/audit/checkpoints", QUERY, bySize, 5_000);
  const chosen = rows.find((one) => String(one.size) === url.cp);
  return (
    <Panel title="Checkpoints" aside={`${rows.length.toLocaleString("en")}${more ? "+" : ""} shown`}>
      <Loaded query={first} rows={6}>
        {() => (
          <div className={classes.history}>
            <Grid
              label="Checkpoints"
              columns={COLUMNS}
              rows={rows}
              keyOf={(one) => String(one.size)}
              current={url.cp}
              onOpen={(one) => setUrl({ cp: url.cp === String(one.size) ? null : String(one.size) }, true)}
              onEnd={fetchMore}
            />
            {chosen && <OneCheckpoint key={chosen.size} item={chosen} log={log} />}
          </div>
        )}
      </Loaded>
    </Panel>
  );
}

type CheckResult = { tone: string; mark: string; word: string; sentence: string } | "busy" | null;

function OneCheckpoint({ item, log }: { item: CheckpointItem; log: LogAnswer }) {
  const [found, setFound] = useState<CheckResult>(null);
  const check = async () => {
    setFound("busy");
    setFound(await compared(item, log));
  };
  return (
    <section className={classes.note} aria-label={`Checkpoint of ${item.size.toLocaleString("en")} entries`}>
      <pre>{item.checkpoint}</pre>
      <div className={classes.noteLine}>
        <Button size="compact-xs" variant="default" loading={found === "busy"} onClick={() => void check()}>
          Check this one in the browser
        </Button>
        {found && found !== "busy" && (
          <span role="status">
            <Tag tone={found.tone}>
              <span aria-hidden>{found.mark}</span> {found.word}
            </Tag>{" "}
            {found.sentence}
          </span>
        )}
      </div>
    </section>
  );
}

/**
 * Verifies its signature with a key this browser trusts, the newest one's too, and that the newest log
 * extends it.
 */
async function compared(item: CheckpointItem, { tenant_id, vkeys }: LogAnswer): Promise<CheckResult> {
  try {
    const known = browserMemory.recall(tenant_id);
    const older = readCheckpoint(item.checkpoint);
    const newer = readCheckpoint(await http.checkpoint(tenant_id));
    if (older.origin !== newer.origin) throw new BadNote("It belongs to another log.");
    const key = vkeys
      .map(({ vkey }) => readKey(vkey))
      .findLast((one) => one.name === older.origin && lineOf(older, one));
    if (!key) throw new BadNote("None of the log's keys signed it.");
    const holds = await verifies(key, older.text, lineOf(older, key)?.signature ?? new Uint8Array());
    if (holds === false) throw new BadNote("Its signature is wrong.");
    const signed = await signedNow(newer, tenant_id, vkeys, known);
    await goesOnFrom(http, tenant_id, older, newer);
    const words = `Its tree is a prefix of the current ${newer.size.toLocaleString("en")} entries.`;
    const half = { tone: "blocked", mark: "!", word: "partly checked" };
    if (holds === null || signed === null)
      return { ...half, sentence: `${words} Signature not checked: ${NO_ED25519}.` };
    const believed = await believedKey(http, tenant_id, vkeys, known);
    const by = `Signed by key ${key.id}. ${words}`;
    if (believed.how === "first")
      return {
        ...half,
        sentence: `${by} This browser trusts no key of this log yet: verify one event first.`,
      };
    return { tone: "good", mark: "✓", word: "held", sentence: by };
  } catch (error) {
    if (error instanceof BadNote || error instanceof BadTree || error instanceof Broken)
      return { tone: "alert", mark: "×", word: "BROKEN", sentence: error.message };
    return { tone: "idle", mark: "–", word: "not checked", sentence: (error as Error).message };
  }
}
