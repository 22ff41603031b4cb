// Previous – this – next, with their hashes compared here, and the proof of this one.
import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ProofBadge } from "~/proof/ProofBadge";
import type { PageOfAuditEvent } from "~/protocol/openapi";
import { Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Panel, Shown } from "~/widgets/Panel";
import classes from "./Message.module.css";
import type { Neighbour, Place } from "./place";

interface Props {
  asked: UseQueryResult<PageOfAuditEvent, Error>;
  place: Place;
  message_id: string;
}

export function Chain({ asked, place, message_id }: Props) {
  return (
    <Panel title="Place in the record">
      <Shown asked={asked} rows={5}>
        {() => (
          <div className={classes.part}>
            <ol className={classes.chain} aria-label="Place in the chain">
              <Spot one={place.before} none="It is the first of the record." />
              <Spot one={place.here} none="Its event is not found in the record." isHere />
              <Spot one={place.after} none="Nothing was recorded after it yet." />
            </ol>
            {place.follows === true && (
              <p className={classes.holds}>✓ Compared here: each names the hash of the one before.</p>
            )}
            {place.follows === false && (
              <p className={classes.broken} role="alert">
                ! The hashes do not follow from each other. Keep a copy of the data folder as it is, then run:{" "}
                <code>observatory verify</code>
              </p>
            )}
            {place.here && (
              <ProofBadge
                audit_event_id={place.here.event.audit_event_id}
                about={{ event: place.here.event, body: { message_id } }}
              />
            )}
          </div>
        )}
      </Shown>
    </Panel>
  );
}

function Spot({ one, none, isHere = false }: { one: Neighbour | null; none: string; isHere?: boolean }) {
  if (!one) return <li className={classes.faint}>{none}</li>;
  const said = inert(one.says);
  return (
    <li aria-current={isHere || undefined}>
      <span className={classes.number}>{one.number.toLocaleString("en")}</span>
      <span className={classes.event}>
        {one.message_id && !isHere ? (
          <Link to="/forensics/message/$messageId" params={{ messageId: one.message_id }} title={said}>
            {said}
          </Link>
        ) : (
          <span title={said}>{said}</span>
        )}
      </span>
      <Id id={one.event.hash_chain.event_hash} length={20} />
    </li>
  );
}
