// The proof of a step: its own event's badge, and how its session's thoughts stand (ruling 37).
import { Link } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import { ProofOf } from "~/proof/ProofBadge";
import classes from "./Step.module.css";
import type { Told } from "./told";

export function StepProof({ told }: { told: Told }) {
  const trails = useAnswer("/v1/thought-sessions", { limit: 1000 });
  const trail = trails.data?.items.find((one) => one.session_id === told.session_id);
  return (
    <>
      <ProofOf sequence_number={told.sequence_number} />
      {trail && (
        <p className={classes.none}>
          <span aria-hidden>{trail.sealed_at ? "◆" : "◇"}</span> The thoughts of this session are{" "}
          {trail.sealed_at ? "sealed" : "not sealed yet"}: {trail.records}{" "}
          {trail.records === 1 ? "record" : "records"},{" "}
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
