// What happened to the message other than delivery: held, refused, rewritten, redacted, shredded. Empty if
// nothing happened.
import { Link } from "@tanstack/react-router";
import { plural } from "~/plural";
import type { AuditEvent, MessageItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { useNames } from "~/widgets/users";
import { redactedIn } from "./chainPosition";
import classes from "./Message.module.css";

export function DeliveryNotes({ message, event }: { message: MessageItem; event: AuditEvent | undefined }) {
  const name = useNames();
  const redacted = redactedIn(event);
  const { shredded, state, rewritten } = message;
  return (
    <>
      {state === "held" && (
        <p className={classes.standing} data-tone="blocked">
          ‖ Held: not delivered yet. <Link to="/inbox">Decide in the inbox</Link>
        </p>
      )}
      {state === "rejected" && (
        <p className={classes.standing} data-tone="alert">
          × Rejected by a person: never delivered.
        </p>
      )}
      {state === "refused" && (
        <p className={classes.standing} data-tone="violation">
          ! Refused by policy: never delivered.
        </p>
      )}
      {rewritten && (
        <p className={classes.standing} data-tone="blocked">
          ◆ Rewritten by a person. The content above was delivered; the exact bytes are the agent's own.
        </p>
      )}
      {redacted > 0 && (
        <p className={classes.standing} data-tone="idle">
          ▮ {plural(redacted, "value was", "values were")} redacted before recording and cannot be restored.
        </p>
      )}
      {shredded && (
        <p className={classes.standing} data-tone="alert">
          × Its content was shredded{shredded.by ? ` by ${name(shredded.by)}` : " by retention"}
          {shredded.at && (
            <>
              , <Ago at={shredded.at} />
            </>
          )}
          {shredded.reason && `: ${shredded.reason}`}. Its position, hash and proof remain (event{" "}
          {shredded.event.toLocaleString("en")}).
        </p>
      )}
    </>
  );
}
