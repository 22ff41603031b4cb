// Who signs and who watches: the log's keys with what this browser remembers of them, and the witnesses.

import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useAnswer } from "~/api/questions";
import { browserMemory, forget } from "~/proof/memory";
import type { LogAnswer } from "~/protocol/openapi";
import { date } from "~/widgets/clock";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { Sure } from "~/widgets/Sure";
import classes from "./Log.module.css";
import { witnessed } from "./standing";

export function Witnesses({ size }: { size: number }) {
  const peers = useAnswer("/v1/peers", undefined, { every: 5_000 });
  return (
    <Panel title="Witnesses" aside="who saw it beside us">
      <Shown asked={peers} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty command="observatory peers add NAME VKEY --witness URL">
              Nobody outside has seen this log. A witness cosigns each checkpoint, so that two histories
              cannot be shown to two people:
            </Empty>
          ) : (
            <ul className={classes.signers} aria-label="Witnesses">
              {items.map((peer) => {
                const { tone, mark, word, far } = witnessed(peer, size);
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
      </Shown>
    </Panel>
  );
}

export function Keys({ log }: { log: LogAnswer }) {
  const [known, setKnown] = useState(() => browserMemory.recall(log.tenant_id));
  const [asks, setAsks] = useState(false);
  const isOther = known !== null && log.vkey !== null && known.vkey !== log.vkey;
  return (
    <Panel title="Keys" aside={log.vkeys.length > 1 ? `${log.vkeys.length - 1} rotations` : "never rotated"}>
      <ul className={classes.signers} aria-label="Keys of the log">
        {log.vkeys.toReversed().map((key) => (
          <li key={key.vkey}>
            <Id id={key.vkey} length={24} />{" "}
            {key.current ? <Tag tone="good">✓ in force</Tag> : <Tag tone="idle">· before</Tag>}
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
          <p>This browser has verified nothing yet; with the first proof it remembers the key.</p>
        ) : (
          <p role={isOther ? "alert" : undefined}>
            {isOther && <Tag tone="blocked">! key changed</Tag>} This browser knows{" "}
            <Id id={known.vkey} length={18} /> since {date(known.since)} and has seen{" "}
            {known.size.toLocaleString("en")} entries signed.
            {isOther && " A proof shows whether the old key vouches for the new one: verify the whole log."}
          </p>
        )}
        {known !== null && !asks && (
          <Button size="compact-xs" variant="default" onClick={() => setAsks(true)}>
            Forget it…
          </Button>
        )}
        {asks && (
          <Sure
            does="Forget key and checkpoint"
            onNo={() => setAsks(false)}
            onYes={async () => {
              forget(log.tenant_id);
              setKnown(null);
              setAsks(false);
            }}
          >
            The next proof believes whatever key the gateway names then. A log that was rewritten or rolled
            back since is no longer found out by this browser.
          </Sure>
        )}
      </div>
    </Panel>
  );
}
