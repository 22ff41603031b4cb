// Verification of the whole log in the browser: progress, rate, cancel; the result, or the first break with
// what to do about it.
import { Button, Progress } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { BreakHelp } from "~/proof/ProofBadge";
import { cancelWhole, resumeRun, useWhole, verifyWhole, type Whole } from "~/proof/wholeLogRun";
import { useKeys } from "~/shell/keys";
import { Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import classes from "./Log.module.css";
import { pace } from "./logStatus";

export function WholeLog({ size }: { size: number; tenant: string }) {
  const whole = useWhole();
  const isBusy = whole.phase === "asking" || whole.phase === "running";
  useKeys(
    { v: { says: "Verify the whole log in this browser", run: () => !isBusy && void verifyWhole() } },
    "Chain and log",
  );
  return (
    <section className={classes.whole} aria-label="Verify the whole log here">
      <div className={classes.ask}>
        <div>
          <h2>Verify everything in this browser</h2>
          <p>
            This browser reads the exact bytes of all {size.toLocaleString("en")} events, recomputes every
            hash, every link and the whole tree, and compares the root with the signed one. Verified
            independently of the believed.
          </p>
        </div>
        {isBusy ? (
          <Button variant="default" onClick={cancelWhole}>
            Cancel
          </Button>
        ) : (
          <Button onClick={() => void verifyWhole()}>
            {whole.phase === "idle" ? "Verify the whole log" : "Verify again"}
          </Button>
        )}
      </div>
      {whole.phase !== "idle" && <Run whole={whole} />}
    </section>
  );
}

function Run({ whole }: { whole: Whole }) {
  const { percent, rate, left } = pace(whole.verified, whole.total, whole.ms);
  return (
    <div className={classes.run}>
      <Progress
        value={percent}
        size="sm"
        color={whole.phase === "broken" ? "red" : undefined}
        aria-label="Events verified"
      />
      <p className={classes.figures}>
        <b>
          {whole.verified.toLocaleString("en")} of {whole.total.toLocaleString("en")}
        </b>
        <span>{rate}</span>
        <span>{(whole.bytes / 1e6).toFixed(1)} MB read</span>
        <span>{(whole.ms / 1000).toFixed(1)} s</span>
        {whole.phase === "running" && <span>{left}</span>}
      </p>
      <div role="status" aria-live="polite">
        <Verdict whole={whole} />
      </div>
    </div>
  );
}

function Verdict({ whole }: { whole: Whole }) {
  const { phase, verified, broken, sentence, signature, root } = whole;
  const count = verified.toLocaleString("en");
  if (phase === "asking") return <p>Fetching the checkpoint and checking its signature…</p>;
  if (phase === "running") return <p className={classes.faint}>{signature}</p>;
  if (phase === "held" && !whole.isSigned)
    return (
      <p>
        <Tag tone="blocked">
          <span aria-hidden>!</span> half checked
        </Tag>{" "}
        All {count} events held: bytes, links, leaves, and they give the root <Id id={root} length={12} /> the
        checkpoint names. The signer is unknown: {signature} Nothing is remembered.
      </p>
    );
  if (phase === "held")
    return (
      <p>
        <Tag tone="good">
          <span aria-hidden>✓</span> verified
        </Tag>{" "}
        All {count} events held: bytes, links, leaves, and the root <Id id={root} length={12} /> is the signed
        one. {signature} Remembered: a later log that does not extend this one is detected.
      </p>
    );
  if (phase === "paused")
    return (
      <p>
        <Tag tone="blocked">
          <span aria-hidden>‖</span> waits
        </Tag>{" "}
        {count} events are verified and stay so; then: {sentence}.{" "}
        <Button size="compact-xs" variant="default" onClick={resumeRun}>
          Resume
        </Button>
      </p>
    );
  if (phase === "cancelled")
    return (
      <p>
        <Tag tone="idle">· cancelled</Tag>{" "}
        {verified > 0 ? `The first ${count} events are valid;` : "Nothing was verified;"} the root was not
        compared.
      </p>
    );
  if (phase === "failed") return <p role="alert">It could not be done: {sentence}</p>;
  return (
    <>
      <p role="alert" className={classes.broken}>
        <Tag tone="alert">
          <span aria-hidden>×</span> BROKEN
        </Tag>{" "}
        {sentence}{" "}
        {broken && broken.what !== "signature" && (
          <>
            First break:{" "}
            <Link
              to="/forensics/$board"
              params={{ board: "audit" }}
              search={{ seq: String(broken.sequence_number) } as never}
            >
              event {broken.sequence_number.toLocaleString("en")}
            </Link>
            . {verified > 0 && `The ${count} before it are valid.`}
          </>
        )}
      </p>
      <BreakHelp number={broken && broken.what !== "signature" ? broken.sequence_number : null} />
    </>
  );
}
