// One event from its exact bytes: who, what, where; its position in the chain (previous – this – next), its
// proof, and the whole record in the seed's shape. A tampered record is shown as it is: reading never stops.
import { Button, CloseButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { bytes, type Problem } from "~/api/client";
import { checkRecord } from "~/proof/event";
import { ProofBadge } from "~/proof/ProofBadge";
import type { AuditEvent } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "./Audit.module.css";
import { readBytes, readEvent, toneOf } from "./auditQuery";

const PATH = "/v1/audit/records";

function useRecord(number: number) {
  return useQuery<{ event: AuditEvent | null; text: string; raw: Uint8Array }, Problem>({
    queryKey: [PATH, {}, { after: number - 1 }],
    queryFn: async ({ signal }) => {
      const raw = await bytes(PATH, { query: { after: number - 1, limit: 1 }, signal });
      return { ...readBytes(raw), raw: raw.subarray(0, raw.indexOf(10) < 0 ? raw.length : raw.indexOf(10)) };
    },
    staleTime: 60_000,
  });
}

interface Props {
  number: number;
  id: string | undefined;
  go: (number: number) => void;
  close: () => void;
}

export function EventPanel({ number, id, go, close }: Props) {
  const request = useRecord(number);
  return (
    <div className={classes.panel}>
      <header className={classes.panelHead}>
        <h2>Event {number.toLocaleString("en")}</h2>
        <CloseButton size="sm" aria-label="Close the event" onClick={close} />
      </header>
      <Loaded query={request} rows={10}>
        {({ event, text, raw }) =>
          text === "" || (event && id && event.audit_event_id !== id) ? (
            <Empty>
              {id
                ? "No event of this tenant has that id."
                : `Event ${number.toLocaleString("en")} does not exist yet, or is missing.`}
            </Empty>
          ) : (
            <OneEvent {...{ number, event, text, raw, go }} />
          )
        }
      </Loaded>
    </div>
  );
}

interface Opened {
  number: number;
  event: AuditEvent | null;
  text: string;
  raw: Uint8Array;
  go: (number: number) => void;
}

function OneEvent({ number, event, text, raw, go }: Opened) {
  const tampered = tamperedText(raw, text, event, number);
  if (!event)
    return (
      <>
        <p className={classes.bent} role="alert">
          {tampered}
        </p>
        <pre className={classes.raw}>{inert(text)}</pre>
      </>
    );
  const read = readEvent(event);
  const { previous_hash, event_hash } = event.hash_chain;
  return (
    <>
      <div className={classes.what}>
        <Tag tone={toneOf(read.severity).tone}>
          <span aria-hidden>{toneOf(read.severity).mark}</span> {read.severityWord.toLowerCase()}
        </Tag>{" "}
        <b>{read.type.replaceAll("_", " ")}</b>
        <p>{read.summary}</p>
      </div>
      {tampered && (
        <p className={classes.bent} role="alert">
          {tampered}
        </p>
      )}
      <dl className={classes.facts}>
        <dt>When</dt>
        <dd>
          <Ago at={read.at} />
        </dd>
        <dt>Actor</dt>
        <dd>
          <Id id={read.who} length={26} />
          {read.whom && (
            <>
              {" → "}
              <Id id={read.whom} length={26} />
            </>
          )}
        </dd>
        {read.session && (
          <>
            <dt>Session</dt>
            <dd>
              <Link to="/sessions/$sessionId" params={{ sessionId: read.session }}>
                {read.session.slice(0, 18)}…
              </Link>
            </dd>
          </>
        )}
        {read.message && (
          <>
            <dt>Message</dt>
            <dd>
              <Link to="/forensics/message/$messageId" params={{ messageId: read.message }}>
                exact bytes and proof
              </Link>
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Id id={event.audit_event_id} length={26} />
        </dd>
      </dl>
      <h3>Proof</h3>
      <ProofBadge audit_event_id={event.audit_event_id} about={{ event }} />
      <h3>Chain</h3>
      <ol className={classes.chain} aria-label="Position in the chain">
        <li>
          <Button size="compact-xs" variant="default" disabled={number <= 1} onClick={() => go(number - 1)}>
            <span className="unseen">previous event </span>← {(number - 1).toLocaleString("en")}
          </Button>
          <Id id={previous_hash} length={22} />
        </li>
        <li aria-current="true">
          <b>this</b> <Id id={event_hash} length={22} />
        </li>
        <li>
          <Button size="compact-xs" variant="default" onClick={() => go(number + 1)}>
            <span className="unseen">next event </span>
            {(number + 1).toLocaleString("en")} →
          </Button>
        </li>
      </ol>
      <h3>Record</h3>
      <Json value={event} label="Stored record" />
    </>
  );
}

/**
 * Checked without being asked: a record whose own hash does not match is never shown as if it were intact.
 */
function tamperedText(
  raw: Uint8Array,
  text: string,
  event: AuditEvent | null,
  number: number,
): string | null {
  try {
    checkRecord(raw, text, String(event?.resource?.["av.tenant.id"]), number);
    return null;
  } catch (error) {
    return `${(error as Error).message} The stored record is shown as it is.`;
  }
}
