// The proof of a step: its own event's badge, and whether it is under its session's seal (ruling 37).
import { Link } from "@tanstack/react-router";
import { ProofOf } from "~/proof/ProofBadge";
import classes from "./Step.module.css";
import type { StepDetails } from "./stepDetails";

export function StepProof({ step: details }: { step: StepDetails }) {
  return (
    <>
      <ProofOf
        sequence_number={details.sequence_number}
        {...(details.kind === "step" &&
          details.message_id && { about: { body: { message_id: details.message_id } } })}
      />
      {details.sealed && (
        <p className={classes.none}>
          <span aria-hidden>◆</span> Sealed with its session's thoughts:{" "}
          <Link
            to="/forensics/$board"
            params={{ board: "trail" }}
            search={{ session: details.session_id } as never}
            className={classes.link}
          >
            decision trail
          </Link>
        </p>
      )}
    </>
  );
}
