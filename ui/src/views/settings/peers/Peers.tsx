// Federation: what others must know of this log, who witnesses it, and the heads of the logs witnessed here.
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { PeerItem, PeersAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Desk, MakeNew } from "../parts/Desk";
import classes from "../parts/Parts.module.css";
import { Copy } from "../parts/Secret";
import { Section } from "../parts/Section";
import { Peer } from "./Peer";
import { PeerForm } from "./PeerForm";
import { standingOf } from "./peers";

export function Peers() {
  const asked = useAnswer("/v1/peers", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Federation"
      lead="Peers witness each other's logs: each cosigns the other's checkpoint only if it goes on from the last, so that nobody can show two histories."
      fills
      acts={<MakeNew word="New peer" denied={denied} />}
    >
      <Shown asked={asked} rows={8}>
        {(answer) => <List answer={answer} denied={denied} />}
      </Shown>
    </Section>
  );
}

function List({ answer, denied }: { answer: PeersAnswer; denied: string | undefined }) {
  const columns = useMemo(
    () => [
      { id: "name", title: "Peer", cell: (peer: PeerItem) => peer.name },
      {
        id: "asked",
        title: "Stands",
        width: 120,
        cell: (peer: PeerItem) => {
          const { tone, word } = standingOf(peer);
          return <Tag tone={tone}>{word}</Tag>;
        },
      },
      {
        id: "ours",
        title: "Cosigned ours",
        width: 100,
        from: 400,
        figure: true,
        cell: (peer: PeerItem) => peer.cosigned_size ?? "–",
      },
      {
        id: "theirs",
        title: "Their head",
        from: 480,
        cell: (peer: PeerItem) =>
          peer.head ? (
            <>
              {peer.head.size} events, <Ago at={peer.head.seen_at} />
            </>
          ) : (
            "none seen"
          ),
      },
      {
        id: "origin",
        title: "Log",
        from: 800,
        cell: (peer: PeerItem) => <span title={peer.origin}>{peer.origin}</span>,
      },
    ],
    [],
  );
  return (
    <Desk
      label="Peers"
      rows={answer.items}
      keyOf={(peer) => peer.peer_id}
      nameOf={(peer) => peer.name}
      columns={columns}
      above={<Own answer={answer} />}
      empty={
        <Empty command='observatory peers add them "$VKEY" --witness https://them.example.com/v1/witness/tnt_default'>
          Nobody witnesses this log yet: its signature is ours alone. Exchange keys with somebody you trust,
          and add them; or on the terminal:
        </Empty>
      }
      makes="New peer"
      making={<PeerForm denied={denied} />}
      one={(peer) => <Peer peer={peer} denied={denied} />}
    />
  );
}

/** What a peer needs of us, and whether our own log is signed and witnessed. */
function Own({ answer: { witness } }: { answer: PeersAnswer }) {
  const log = useAnswer("/v1/audit/log", undefined, { every: 5_000, keep: true });
  return (
    <div className={classes.fixed}>
      <Panel title="This log, for your peers">
        <Shown asked={log} rows={2}>
          {(own) => (
            <div className={classes.part}>
              <dl className={classes.facts}>
                <dt>signed</dt>
                <dd>
                  {own.size} of {own.head} events, <Ago at={own.signed_at} />
                  {own.state === "refused" && ` · not signed on: ${own.detail ?? "refused"}`}
                </dd>
                <dt>witnessed</dt>
                <dd>
                  {own.witnessed
                    ? `${own.witnessed.size} events, by ${own.witnessed.witnesses.map((one) => one.name).join(", ")}`
                    : "by nobody yet"}
                </dd>
                <dt>key</dt>
                <dd className="mono">{own.vkey ?? "none yet"}</dd>
                <dt>witness at</dt>
                <dd className="mono">{witness.url}</dd>
              </dl>
              <div className={classes.buttons}>
                {own.vkey && <Copy value={own.vkey} word="Copy the key" />}
                <Copy value={witness.url} word="Copy the witness address" />
              </div>
            </div>
          )}
        </Shown>
      </Panel>
    </div>
  );
}
