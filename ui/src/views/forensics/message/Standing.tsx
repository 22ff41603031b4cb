// What became of the message beside being forwarded: held, refused, rewritten, redacted, shredded. Nothing is
// shown where nothing happened to it.
import { Link } from "@tanstack/react-router";
import type { AuditEvent, MessageItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { useNames } from "~/widgets/people";
import classes from "./Message.module.css";
import { redactedIn } from "./place";

export function Standing({ message, event }: { message: MessageItem; event: AuditEvent | undefined }) {
  const name = useNames();
  const redacted = redactedIn(event);
  const { shredded, state, rewritten } = message;
  return (
    <>
      {state === "held" && (
        <p className={classes.standing} data-tone="blocked">
          ‖ It is held: it has not reached anybody yet. <Link to="/inbox">Answer it in the inbox</Link>
        </p>
      )}
      {state === "rejected" && (
        <p className={classes.standing} data-tone="alert">
          × A person rejected it: it was never forwarded.
        </p>
      )}
      {state === "refused" && (
        <p className={classes.standing} data-tone="violation">
          ! The gateway refused it by its rules: it was never forwarded.
        </p>
      )}
      {rewritten && (
        <p className={classes.standing} data-tone="blocked">
          ◆ A person put other content in its place. The story is what went on; the exact bytes are the
          agent's own.
        </p>
      )}
      {redacted > 0 && (
        <p className={classes.standing} data-tone="idle">
          ▮ {redacted} {redacted === 1 ? "place was" : "places were"} redacted before it was recorded: nobody,
          not even this page, can bring that back.
        </p>
      )}
      {shredded && (
        <p className={classes.standing} data-tone="alert">
          × Its bytes were shredded{shredded.by ? ` by ${name(shredded.by)}` : " by order"}
          {shredded.at && (
            <>
              , <Ago at={shredded.at} />
            </>
          )}
          {shredded.reason && `: ${shredded.reason}`}. Its place, its hash and its proof still stand (event{" "}
          {shredded.event.toLocaleString("en")}).
        </p>
      )}
    </>
  );
}
