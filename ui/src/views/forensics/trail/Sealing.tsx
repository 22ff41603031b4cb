// Verification of a session's thoughts in this browser, and its seal: what it is, or what is missing for it.
import { Button } from "@mantine/core";
import { useState } from "react";
import { send } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { runCommand } from "~/commands/session";
import { noun, plural } from "~/plural";
import { ProofBadge } from "~/proof/ProofBadge";
import { type Thoughts, verifyThoughts } from "~/proof/thoughts";
import type { ThoughtItem, ThoughtSessionItem } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useMay, useWhyNot } from "~/widgets/users";
import classes from "./Trail.module.css";
import { beforeSeal } from "./thoughtText";

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
          recomputes every hash and the root over {plural(session.records, "record")} again, in this browser
        </span>
      </div>
      {found && (
        <p role="status">
          <Tag tone={found.valid ? "good" : "alert"}>
            <span aria-hidden>{found.valid ? "✓" : "×"}</span> {found.valid ? "hashes valid" : "BROKEN"}
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
 * The seal is an event of the tenant's log like any other: its own proof ties the root to the signed
 * checkpoint. It is looked up by the session's id, not its trace: thoughts may be sealed before the session's
 * first message arrives, and then the event is in no trace.
 */
function Sealed({ session }: { session: ThoughtSessionItem }) {
  const query = useApi("/v1/audit/tenant", {
    entity_id: `thoughts:${session.session_id}`,
    event_type: "thought_session_sealed",
    limit: 10,
  });
  const event = query.data?.items.find((one) => one.body.session_id === session.session_id);
  const isOther = event !== undefined && event.body.root !== session.root;
  return (
    <section className={classes.check} aria-label="Seal">
      <p>
        Sealed <Ago at={session.sealed_at} /> under <Id id={session.root ?? ""} length={22} />
      </p>
      {isOther && (
        <p role="alert" className={classes.bent}>
          The seal event names a different root than this session.
        </p>
      )}
      {event ? (
        <ProofBadge
          audit_event_id={event.audit_event_id}
          about={{ event, body: { session_id: session.session_id, root: session.root } }}
        />
      ) : (
        query.data && <p className={classes.faint}>The seal event was not found in the log.</p>
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
    await runCommand(
      "Verify",
      () => send("POST /v1/sessions/{session_id}/thoughts/verify", { params }),
      (answer) => ({
        text: answer.valid
          ? `The gateway verified ${plural(answer.records, "record")}.`
          : `The chain is broken at record ${answer.first_broken_index}.`,
      }),
    );
    setBusy(false);
    refetch(...TOUCHED);
  };
  const seal = async () => {
    await runCommand(
      "Seal",
      () => send("POST /v1/sessions/{session_id}/seal", { params }),
      (answer) => ({ text: `Sealed over ${plural(answer.size, "record")}. Nothing can be added any more.` }),
    );
    setAsks(false);
    refetch(...TOUCHED);
  };
  return (
    <section className={classes.check} aria-label="Seal">
      <p>Not sealed. {missing ?? "Ready to seal: verified, and closed with a reflection."}</p>
      <div className={classes.line}>
        <Button
          size="compact-xs"
          variant="default"
          loading={busy}
          disabled={deniedVerify !== undefined || session.records === 0}
          title={deniedVerify}
          onClick={() => void verify()}
        >
          Verify on the gateway
        </Button>
        <Button
          size="compact-xs"
          variant="default"
          disabled={missing !== null || !maySend}
          title={maySend ? (missing ?? undefined) : "Your role can read but not write to a session."}
          onClick={() => setAsks(true)}
        >
          Seal…
        </Button>
      </div>
      {asks && (
        <ConfirmInline
          does={`Seal ${plural(session.records, "record")}`}
          danger={false}
          onYes={seal}
          onNo={() => setAsks(false)}
        >
          The root over {noun(session.records, "this", "these")} {plural(session.records, "record")} is
          written to the log. Nothing can be added to this session afterwards, and a seal cannot be undone.
        </ConfirmInline>
      )}
    </section>
  );
}
