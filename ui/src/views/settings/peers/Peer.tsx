// One peer: status, tree head and, on a conflict, both signed notes; submit, change key, remove.
import { Textarea } from "@mantine/core";
import { useState } from "react";
import { changePeerKey, removePeer, submitCheckpoint } from "~/commands/connections";
import { plural } from "~/plural";
import type { PeerItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Collapsible } from "../parts/Collapsible";
import { BusyButton, DangerButton } from "../parts/DangerButton";
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
            ! Their log showed {FORKS[peer.fork.kind]}, <Ago at={peer.fork.seen_at} />. Its checkpoints are no
            longer cosigned. Keep both notes, they are proof by themselves; then contact their operators, not
            their gateway.
          </p>
          <h3>Presented now</h3>
          <code className={classes.code}>{peer.fork.checkpoint}</code>
          {peer.head && (
            <>
              <h3>Cosigned before</h3>
              <code className={classes.code}>{peer.head.checkpoint}</code>
            </>
          )}
        </div>
      )}
      <div className={classes.part}>
        <dl className={classes.facts}>
          <dt>status</dt>
          <dd>
            <Tag tone={tone}>{word}</Tag> {peer.asked.detail}
          </dd>
          <dt>last contact</dt>
          <dd>
            <Ago at={peer.asked.at} />
          </dd>
          <dt>cosigned</dt>
          <dd>{peer.cosigned_size === null ? "nothing yet" : plural(peer.cosigned_size, "event")}</dd>
          <dt>their head</dt>
          <dd>
            {peer.head ? (
              <>
                {plural(peer.head.size, "event")}, root <Id id={peer.head.root} />, seen{" "}
                <Ago at={peer.head.seen_at} />
              </>
            ) : (
              "none seen"
            )}
          </dd>
          <dt>witness at</dt>
          <dd>{peer.url ?? "no URL"}</dd>
          <dt>log at</dt>
          <dd>{peer.log_url ?? "no URL"}</dd>
        </dl>
        <div className={classes.buttons}>
          <BusyButton
            word="Submit checkpoint now"
            denied={denied ?? (peer.url ? undefined : "No witness URL")}
            onClick={() => submitCheckpoint(peer.peer_id, peer.name)}
          />
        </div>
        <Collapsible word="Full key and head">
          <code className={classes.code}>{peer.vkey}</code>
          {peer.head && <code className={classes.code}>{peer.head.checkpoint}</code>}
        </Collapsible>
      </div>
      <NewKey peer={peer} denied={denied} />
      <div className={classes.part}>
        <DangerButton
          word="Remove peer"
          does={`Remove “${peer.name}”`}
          denied={denied}
          onYes={async () => {
            if (await removePeer(peer.peer_id, peer.name)) setUrl({ one: null });
          }}
        >
          It is no longer contacted and witnesses nothing new. Its head is kept: if added again, it must
          extend there.
        </DangerButton>
      </div>
    </>
  );
}

function NewKey({ peer, denied }: { peer: PeerItem; denied: string | undefined }) {
  const [vkey, setKey] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  return (
    <div className={classes.part}>
      <h3>Change key</h3>
      <p>
        A rotation is trusted automatically when their log proves it. Use this only for a lost key: contact
        their operators first.
      </p>
      <Textarea
        size="xs"
        label="New key"
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
      <DangerButton
        word="Trust this key"
        does="Trust it from now on"
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
        Signatures of this key are accepted as theirs on your decision, which is recorded. The old key is no
        longer more.
      </DangerButton>
    </div>
  );
}
