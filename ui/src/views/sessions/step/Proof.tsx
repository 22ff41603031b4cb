// The proof of a step: its own event's badge, and whether it lies under its session's seal (ruling 37).
import { Link } from "@tanstack/react-router";
import { ProofOf } from "~/proof/ProofBadge";
import classes from "./Step.module.css";
import type { Told } from "./told";

export function StepProof({ told }: { told: Told }) {
  return (
    <>
      <ProofOf
        sequence_number={told.sequence_number}
        {...(told.kind === "step" && told.message_id && { about: { body: { message_id: told.message_id } } })}
      />
      {told.sealed && (
        <p className={classes.none}>
          <span aria-hidden>◆</span> Sealed with the thoughts of its session:{" "}
          <Link
            to="/forensics/$board"
            params={{ board: "trail" }}
            search={{ session: told.session_id } as never}
            className={classes.link}
          >
            decision trail
          </Link>
        </p>
      )}
    </>
  );
}
