// One peer: how it stands, its head and, where there is doubt, both signed notes; offer, another key, removal.
import { Textarea } from "@mantine/core";
import { useState } from "react";
import { changePeerKey, offerTo, removePeer } from "~/acts/connections";
import type { PeerItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Danger, Doing } from "../parts/Danger";
import { Folded } from "../parts/Folded";
import classes from "../parts/Parts.module.css";
import { FORKS, standingOf } from "./peers";

export function Peer({ peer, denied }: { peer: PeerItem; denied: string | undefined }) {
  const [, setUrl] = useUrl();
  const { tone, word } = standingOf(peer);
  return (
    <>
      {peer.fork && (
        <div className={classes.part} role="alert">
          <p className={classes.trouble}>
            ! Their log showed {FORKS[peer.fork.kind]}, <Ago at={peer.fork.seen_at} />. Nothing of it is
            cosigned any more. Keep both notes, they are proof by themselves; then ask their people, not their
            gateway.
          </p>
          <h3>What they show now</h3>
          <code className={classes.code}>{peer.fork.checkpoint}</code>
          {peer.head && (
            <>
              <h3>What was cosigned</h3>
              <code className={classes.code}>{peer.head.checkpoint}</code>
            </>
          )}
        </div>
      )}
      <div className={classes.part}>
        <dl className={classes.facts}>
          <dt>stands</dt>
          <dd>
            <Tag tone={tone}>{word}</Tag> {peer.asked.detail}
          </dd>
          <dt>asked</dt>
          <dd>
            <Ago at={peer.asked.at} />
          </dd>
          <dt>cosigned ours</dt>
          <dd>{peer.cosigned_size === null ? "nothing yet" : `${peer.cosigned_size} events`}</dd>
          <dt>their head</dt>
          <dd>
            {peer.head ? (
              <>
                {peer.head.size} events, root <Id id={peer.head.root} />, seen <Ago at={peer.head.seen_at} />
              </>
            ) : (
              "none seen"
            )}
          </dd>
          <dt>witness at</dt>
          <dd>{peer.url ?? "not to be asked"}</dd>
          <dt>log at</dt>
          <dd>{peer.log_url ?? "not to be looked at"}</dd>
        </dl>
        <div className={classes.buttons}>
          <Doing
            word="Offer our checkpoint now"
            denied={denied ?? (peer.url ? undefined : "It has no address at which it could be asked")}
            onClick={() => offerTo(peer.peer_id, peer.name)}
          />
        </div>
        <Folded word="Key and head, whole">
          <code className={classes.code}>{peer.vkey}</code>
          {peer.head && <code className={classes.code}>{peer.head.checkpoint}</code>}
        </Folded>
      </div>
      <NewKey peer={peer} denied={denied} />
      <div className={classes.part}>
        <Danger
          word="Remove the peer"
          does={`Remove “${peer.name}”`}
          denied={denied}
          onYes={async () => {
            if (await removePeer(peer.peer_id, peer.name)) setUrl({ one: null });
          }}
        >
          It is asked no more and witnesses nothing new. Its head is kept: added again, it must go on from
          there.
        </Danger>
      </div>
    </>
  );
}

function NewKey({ peer, denied }: { peer: PeerItem; denied: string | undefined }) {
  const [vkey, setKey] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  return (
    <div className={classes.part}>
      <h3>Another key</h3>
      <p>
        A rotation is believed by itself when their log vouches for it. This is for a key that was lost: ask
        their people first.
      </p>
      <Textarea
        size="xs"
        label="The key that follows"
        rows={2}
        spellCheck={false}
        disabled={denied !== undefined}
        value={vkey}
        error={fault}
        onChange={(event) => {
          setKey(event.currentTarget.value);
          setFault(null);
        }}
      />
      <Danger
        word="Believe this key"
        does="Believe it from now on"
        denied={denied ?? (vkey.trim() ? undefined : "Paste the key first")}
        typed={peer.name}
        onYes={async () => {
          const done = await changePeerKey(peer.peer_id, vkey.trim(), (problem) => {
            setFault(problem.message);
            return true;
          });
          if (done) setKey("");
        }}
      >
        What this key signs counts as theirs, on your word; it is on record as yours. The old key counts no
        more.
      </Danger>
    </div>
  );
}
