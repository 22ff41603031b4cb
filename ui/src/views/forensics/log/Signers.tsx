// The log's signing keys with this browser's trust in them, and its witnesses.

import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import { browserMemory, forget } from "~/proof/browserMemory";
import type { LogAnswer } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { date } from "~/widgets/clock";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import classes from "./Log.module.css";
import { witnessStatus } from "./logStatus";

export function Witnesses({ size }: { size: number }) {
  const peers = useApi("/v1/peers", undefined, { every: 5_000 });
  return (
    <Panel title="Witnesses" aside="independent cosigners">
      <Loaded query={peers} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty command="observatory peers add NAME VKEY --witness URL">
              No witness has seen this log. A log cannot witness itself; a witness cosigns each checkpoint, so
              that a split view is detected:
            </Empty>
          ) : (
            <ul className={classes.signers} aria-label="Witnesses">
              {items.map((peer) => {
                const { tone, mark, word, far } = witnessStatus(peer, size);
                return (
                  <li key={peer.peer_id}>
                    <b>{peer.name}</b>{" "}
                    <Tag tone={tone}>
                      <span aria-hidden>{mark}</span> {word}
                    </Tag>
                    <p>
                      {far}
                      {peer.asked.at && (
                        <>
                          , last asked <Ago at={peer.asked.at} />
                        </>
                      )}
                      {peer.asked.detail && `: ${peer.asked.detail}`}
                    </p>
                  </li>
                );
              })}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

export function Keys({ log }: { log: LogAnswer }) {
  const [known, setKnown] = useState(() => browserMemory.recall(log.tenant_id));
  const [asks, setAsks] = useState(false);
  const isOther = known !== null && log.vkey !== null && known.vkey !== log.vkey;
  return (
    <Panel
      title="Keyboard shortcuts"
      aside={log.vkeys.length > 1 ? plural(log.vkeys.length - 1, "rotation") : "never rotated"}
    >
      <ul className={classes.signers} aria-label="Keys of the log">
        {log.vkeys.toReversed().map((key) => (
          <li key={key.vkey}>
            <Id id={key.vkey} length={24} />{" "}
            {key.current ? <Tag tone="good">✓ current</Tag> : <Tag tone="idle">· previous</Tag>}
            <p>
              {key.since_sequence === 0 ? (
                "from the first event"
              ) : (
                <>
                  from{" "}
                  <Link
                    to="/forensics/$board"
                    params={{ board: "audit" }}
                    search={{ seq: String(key.since_sequence) } as never}
                  >
                    event {key.since_sequence.toLocaleString("en")}
                  </Link>
                </>
              )}
              , made <Ago at={key.created_at} />
            </p>
          </li>
        ))}
      </ul>
      <div className={classes.known}>
        {known === null ? (
          <p>This browser has verified nothing yet; it will trust the key with the first proof.</p>
        ) : (
          <p role={isOther ? "alert" : undefined}>
            {isOther && <Tag tone="blocked">! key changed</Tag>} This browser trusts{" "}
            <Id id={known.vkey} length={18} /> since {date(known.since)} and has seen{" "}
            {known.size.toLocaleString("en")} entries signed.
            {isOther && " A proof shows whether the old key vouches for the new one: verify the whole log."}
          </p>
        )}
        {known !== null && !asks && (
          <Button size="compact-xs" variant="default" onClick={() => setAsks(true)}>
            Remove trusted key…
          </Button>
        )}
        {asks && (
          <ConfirmInline
            does="Remove trusted key and checkpoint"
            onNo={() => setAsks(false)}
            onYes={async () => {
              forget(log.tenant_id);
              setKnown(null);
              setAsks(false);
            }}
          >
            The next proof trusts whatever key the gateway names. This browser can then no longer detect a log
            that was rewritten or rolled back since.
          </ConfirmInline>
        )}
      </div>
    </Panel>
  );
}
