// Previous – this – next, with their hashes compared in the browser, and the proof of this one.
import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ProofBadge } from "~/proof/ProofBadge";
import type { PageOfAuditEvent } from "~/protocol/openapi";
import { Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Loaded, Panel } from "~/widgets/Panel";
import type { ChainPosition, Neighbour } from "./chainPosition";
import classes from "./Message.module.css";

interface Props {
  query: UseQueryResult<PageOfAuditEvent, Error>;
  place: ChainPosition;
  message_id: string;
}

export function Chain({ query: asked, place, message_id }: Props) {
  return (
    <Panel title="Position in the record">
      <Loaded query={asked} rows={5}>
        {() => (
          <div className={classes.part}>
            <ol className={classes.chain} aria-label="Position in the chain">
              <Spot one={place.before} none="This is the first event." />
              <Spot one={place.here} none="Its event was not found in the record." isHere />
              <Spot one={place.after} none="This is the newest event." />
            </ol>
            {place.follows === true && (
              <p className={classes.holds}>✓ Verified here: each names the hash of the previous one.</p>
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
      </Loaded>
    </Panel>
  );
}

function Spot({ one, none, isHere = false }: { one: Neighbour | null; none: string; isHere?: boolean }) {
  if (!one) return <li className={classes.faint}>{none}</li>;
  const text = inert(one.says);
  return (
    <li aria-current={isHere || undefined}>
      <span className={classes.number}>{one.number.toLocaleString("en")}</span>
      <span className={classes.event}>
        {one.message_id && !isHere ? (
          <Link to="/forensics/message/$messageId" params={{ messageId: one.message_id }} title={text}>
            {text}
          </Link>
        ) : (
          <span title={text}>{text}</span>
        )}
      </span>
      <Id id={one.event.hash_chain.event_hash} length={20} />
    </li>
  );
}
