// The check of a session's thoughts in this browser, and its seal: what it is, or what is missing for it.
import { Button } from "@mantine/core";
import { useState } from "react";
import { act } from "~/acts/acts";
import { send } from "~/api/client";
import { askAgain, useAnswer } from "~/api/questions";
import { ProofBadge } from "~/proof/ProofBadge";
import { type Thoughts, verifyThoughts } from "~/proof/thoughts";
import type { ThoughtItem, ThoughtSessionItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useMay, useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import { beforeSeal } from "./reading";
import classes from "./Trail.module.css";

interface Props {
  session: ThoughtSessionItem;
  items: ThoughtItem[];
}

export function Check({ session, items }: Props) {
  const [found, setFound] = useState<Thoughts | null>(null);
  return (
    <section className={classes.check} aria-label="Verify these thoughts here">
      <div className={classes.line}>
        <Button
          size="compact-sm"
          disabled={items.length < session.records}
          onClick={() => setFound(verifyThoughts(session, items))}
        >
          Verify here
        </Button>
        <span className={classes.faint}>
          makes every hash and the root over {session.records} {session.records === 1 ? "record" : "records"}{" "}
          again, in this browser
        </span>
      </div>
      {found && (
        <p role="status">
          <Tag tone={found.valid ? "good" : "alert"}>
            <span aria-hidden>{found.valid ? "✓" : "×"}</span> {found.valid ? "hashes held" : "BROKEN"}
          </Tag>{" "}
          {found.first_broken_index !== null && <b>First break at record {found.first_broken_index}. </b>}
          {found.sentence}{" "}
          {found.root && (
            <>
              Root <Id id={found.root} length={18} />
            </>
          )}
          {!found.valid &&
            " Reading still works. Keep what you see: observatory export --bundle SESSION -o evidence.zip, and compare the root with the seal's event."}
        </p>
      )}
    </section>
  );
}

export function Sealing({ session, items }: Props) {
  return session.sealed_at ? <Sealed session={session} /> : <Unsealed session={session} items={items} />;
}

/**
 * The seal is an event of the tenant's log like any other: its own proof ties the root to the signed checkpoint.
 * It is looked up by the session's address, not its trace: thoughts may be sealed before the session's first
 * message arrives, and then the event is in no trace.
 */
function Sealed({ session }: { session: ThoughtSessionItem }) {
  const asked = useAnswer("/v1/audit/tenant", {
    entity_id: `thoughts:${session.session_id}`,
    event_type: "thought_session_sealed",
    limit: 10,
  });
  const event = asked.data?.items.find((one) => one.body.session_id === session.session_id);
  const isOther = event !== undefined && event.body.root !== session.root;
  return (
    <section className={classes.check} aria-label="Seal">
      <p>
        Sealed <Ago at={session.sealed_at} /> under <Id id={session.root ?? ""} length={22} />
      </p>
      {isOther && (
        <p role="alert" className={classes.bent}>
          The event that tells of the seal names another root than this session carries.
        </p>
      )}
      {event ? (
        <ProofBadge
          audit_event_id={event.audit_event_id}
          about={{ event, body: { session_id: session.session_id, root: session.root } }}
        />
      ) : (
        asked.data && <p className={classes.faint}>The event of its seal was not found in the log.</p>
      )}
    </section>
  );
}

const TOUCHED = ["/v1/sessions/{session_id}/thoughts", "/v1/thought-sessions"];

function Unsealed({ session, items }: Props) {
  const [asks, setAsks] = useState(false);
  const [busy, setBusy] = useState(false);
  const deniedVerify = useWhyNot("verify");
  const maySend = useMay("send");
  const missing = beforeSeal(session, items.at(-1));
  const params = { session_id: session.session_id };
  const verify = async () => {
    setBusy(true);
    await act(
      "Verify",
      () => send("POST /v1/sessions/{session_id}/thoughts/verify", { params }),
      (answer) => ({
        text: answer.valid
          ? `The gateway verified ${answer.records} records.`
          : `The chain is broken at record ${answer.first_broken_index}.`,
      }),
    );
    setBusy(false);
    askAgain(...TOUCHED);
  };
  const seal = async () => {
    await act(
      "Seal",
      () => send("POST /v1/sessions/{session_id}/seal", { params }),
      (answer) => ({ text: `Sealed over ${answer.size} records. Nothing can be added any more.` }),
    );
    setAsks(false);
    askAgain(...TOUCHED);
  };
  return (
    <section className={classes.check} aria-label="Seal">
      <p>Not sealed. {missing ?? "Everything is there: verified, and closed with a reflection."}</p>
      <div className={classes.line}>
        <Button
          size="compact-xs"
          variant="default"
          loading={busy}
          disabled={deniedVerify !== undefined || session.records === 0}
          title={deniedVerify}
          onClick={() => void verify()}
        >
          Let the gateway verify
        </Button>
        <Button
          size="compact-xs"
          variant="default"
          disabled={missing !== null || !maySend}
          title={maySend ? (missing ?? undefined) : "Your role may read, not write to a session."}
          onClick={() => setAsks(true)}
        >
          Seal…
        </Button>
      </div>
      {asks && (
        <Sure
          does={`Seal ${session.records} records`}
          danger={false}
          onYes={seal}
          onNo={() => setAsks(false)}
        >
          The root over these {session.records} records is written into the log. Nothing can be added to this
          session afterwards, and a seal is never taken back.
        </Sure>
      )}
    </section>
  );
}
