// Federation: this log's key and URLs for peers, its witnesses, and the heads of the logs witnessed here.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { PeerItem, PeersAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { MakeNew, MasterDetail } from "../parts/MasterDetail";
import classes from "../parts/Parts.module.css";
import { Copy } from "../parts/Secret";
import { Section } from "../parts/Section";
import { Peer } from "./Peer";
import { PeerForm } from "./PeerForm";
import { standingOf } from "./peers";

export function Peers() {
  const query = useApi("/v1/peers", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Federation"
      lead="Peers witness each other's logs: each cosigns the other's checkpoint only if it extends the last one, so that a split view is impossible."
      fills
      acts={<MakeNew word="New peer" denied={denied} />}
    >
      <Loaded query={query} rows={8}>
        {(answer) => <List answer={answer} denied={denied} />}
      </Loaded>
    </Section>
  );
}

function List({ answer, denied }: { answer: PeersAnswer; denied: string | undefined }) {
  const columns = useMemo(
    () => [
      { id: "name", title: "Peer", cell: (peer: PeerItem) => peer.name },
      {
        id: "asked",
        title: "Status",
        width: 120,
        cell: (peer: PeerItem) => {
          const { tone, word } = standingOf(peer);
          return <Tag tone={tone}>{word}</Tag>;
        },
      },
      {
        id: "ours",
        title: "Cosigned",
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
    <MasterDetail
      label="Peers"
      rows={answer.items}
      keyOf={(peer) => peer.peer_id}
      nameOf={(peer) => peer.name}
      columns={columns}
      above={<Own answer={answer} />}
      empty={
        <Empty command='observatory peers add them "$VKEY" --witness https://them.example.com/v1/witness/tnt_default'>
          No witnesses: a log cannot witness itself. Exchange keys with a peer you trust, and add it; or on
          the command line:
        </Empty>
      }
      makes="New peer"
      making={<PeerForm denied={denied} />}
      one={(peer) => <Peer peer={peer} denied={denied} />}
    />
  );
}

/** What a peer needs to know, and whether this log is signed and witnessed. */
function Own({ answer: { witness } }: { answer: PeersAnswer }) {
  const log = useApi("/v1/audit/log", undefined, { every: 5_000, keep: true });
  return (
    <div className={classes.fixed}>
      <Panel title="This log, for your peers">
        <Loaded query={log} rows={2}>
          {(own) => (
            <div className={classes.part}>
              <dl className={classes.facts}>
                <dt>signed</dt>
                <dd>
                  {own.size} of {own.head} events, <Ago at={own.signed_at} />
                  {own.state === "refused" && ` · signing stopped: ${own.detail ?? "refused"}`}
                </dd>
                <dt>witnessed</dt>
                <dd>
                  {own.witnessed
                    ? `${plural(own.witnessed.size, "event")}, by ${own.witnessed.witnesses.map((one) => one.name).join(", ")}`
                    : "not yet"}
                </dd>
                <dt>key</dt>
                <dd className="mono">{own.vkey ?? "none yet"}</dd>
                <dt>witness at</dt>
                <dd className="mono">{witness.url}</dd>
              </dl>
              <div className={classes.buttons}>
                {own.vkey && <Copy value={own.vkey} word="Copy key" />}
                <Copy value={witness.url} word="Copy witness URL" />
              </div>
            </div>
          )}
        </Loaded>
      </Panel>
    </div>
  );
}
