// How far an event is proven: recorded, sealed under a signed checkpoint, verified by this browser. "Verify
// here" computes the proof from bytes, tiles and checkpoint and shows each step; a break is shown with what
// to do about it.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import { Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Loaded } from "~/widgets/Panel";
import { numberOf } from "./event";
import { lineOfBytes } from "./key";
import classes from "./Proof.module.css";
import { type About, otherThan } from "./recordMatch";
import { base64, hex } from "./sha256";
import { http } from "./source";
import type { PathPart } from "./tree";
import { useProof, verifyHere } from "./verdicts";
import { type Outcome, type Proof, STEPS, type Step, type StepId } from "./verify";

export const OUTCOMES: Record<Outcome, { mark: string; word: string; tone: string }> = {
  held: { mark: "✓", word: "held", tone: "good" },
  broken: { mark: "×", word: "BROKEN", tone: "alert" },
  unchecked: { mark: "–", word: "not checked", tone: "idle" },
  warned: { mark: "!", word: "Review", tone: "blocked" },
};

/** `about` is what the page shows of this event: a proof of another record is rejected. */
export function ProofBadge({ audit_event_id, about }: { audit_event_id: string; about?: About }) {
  const { proof, busy } = useProof(audit_event_id);
  const other = proof?.event ? otherThan(proof.event.record, about) : null;
  const number = numberOf(audit_event_id);
  const log = useApi("/v1/audit/log", undefined, { every: proof ? false : 5_000 });
  const isSealed = log.data !== undefined && number !== null && number <= log.data.size;
  const isBroken = proof?.state === "broken" || other !== null;
  const state = isBroken ? -1 : proof?.state === "verified" ? 2 : isSealed ? 1 : 0;
  return (
    <section className={classes.badge} aria-label="Proof">
      <div className={classes.line}>
        <States state={state} />
        {state === 2 && proof?.steps.some((step) => step.outcome === "warned") && (
          <Tag tone="blocked">
            <span aria-hidden>!</span> Review the marked step
          </Tag>
        )}
        <Button
          size="compact-xs"
          variant="default"
          loading={busy}
          onClick={() => void verifyHere(audit_event_id)}
        >
          {proof ? "Verify again" : "Verify here"}
        </Button>
      </div>
      <div role="status" aria-live="polite">
        {proof && <Steps proof={proof} busy={busy} />}
        {other && <p className={classes.other}>× {other}</p>}
      </div>
      {isBroken && !busy && <BreakHelp number={number} />}
    </section>
  );
}

/** The same for an event known by its number: a step, a message. */
export function ProofOf({ sequence_number, about }: { sequence_number: number; about?: About }) {
  const query = useQuery<string | null, Problem>({
    queryKey: ["/v1/audit/records", "id", sequence_number],
    queryFn: async ({ signal }) => {
      const raw = await http.records(sequence_number - 1, 1, signal);
      const found = JSON.parse(new TextDecoder().decode(lineOfBytes(raw)) || "{}") as {
        audit_event_id?: string;
      };
      return found.audit_event_id ?? null;
    },
    staleTime: 60_000,
  });
  return (
    <Loaded query={query} rows={1}>
      {(id) =>
        id ? (
          <ProofBadge audit_event_id={id} {...(about && { about })} />
        ) : (
          <span>Its event was not found in the log.</span>
        )
      }
    </Loaded>
  );
}

const WORDS = ["recorded", "sealed", "verified"] as const;
const MARKS = ["●", "◆", "✓"] as const;

/** The three states in a row; reached ones are marked, the others are faint and say so. */
function States({ state }: { state: number }) {
  if (state < 0)
    return (
      <Tag tone="alert">
        <span aria-hidden>×</span> proof broken
      </Tag>
    );
  return (
    <ol className={classes.states} aria-label={`Proof: ${WORDS[state]}`}>
      {WORDS.map((word, n) => (
        <li key={word} data-reached={n <= state || undefined} aria-current={n === state || undefined}>
          <span aria-hidden>{n <= state ? MARKS[n] : "○"}</span> {word}
          {n > state && <span className="unseen"> (not yet)</span>}
        </li>
      ))}
    </ol>
  );
}

const ORDER = Object.keys(STEPS) as StepId[];

function Steps({ proof, busy }: { proof: Proof; busy: boolean }) {
  const rest = ORDER.filter((id) => !proof.steps.some((step) => step.id === id));
  return (
    <ol className={classes.steps} aria-label="Steps of the proof">
      {proof.steps.map((step) => (
        <OneStep key={step.id} step={step}>
          {step.id === "path" && step.outcome === "held" && <Path proof={proof} />}
        </OneStep>
      ))}
      {rest.map((id, n) => (
        <li key={id} data-tone="idle">
          <span aria-hidden className={classes.mark}>
            {busy && n === 0 ? "…" : "·"}
          </span>
          <div>
            <b>{STEPS[id]}</b> <span className={classes.faint}>{busy ? "" : "not reached"}</span>
          </div>
        </li>
      ))}
    </ol>
  );
}

function OneStep({ step, children }: { step: Step; children?: React.ReactNode }) {
  const { mark, word, tone } = OUTCOMES[step.outcome];
  return (
    <li data-tone={tone}>
      <span aria-hidden className={classes.mark}>
        {mark}
      </span>
      <div>
        <b>{STEPS[step.id]}</b> <span className={classes.word}>{word}</span>
        <p>{step.sentence}</p>
        {children}
      </div>
    </li>
  );
}

/** The path from the leaf to the signed root: a disc for each hash, left or right of the path. */
function Path({ proof }: { proof: Proof }) {
  const { path, event, checkpoint } = proof;
  if (!event || !checkpoint) return null;
  return (
    <>
      <ul className={classes.path} aria-label="Path from the leaf to the signed root">
        <li className={classes.tip} title={`leaf ${hex(event.leafHash)}`}>
          <span className={classes.end}>leaf</span>
        </li>
        {path.map((part) => (
          <li key={part.range.join()} className={classes.hop} data-side={part.side} title={said(part)}>
            <span className="unseen">{said(part)}</span>
          </li>
        ))}
        <li className={classes.tip} title={`root ${checkpoint.root}`}>
          <span className={classes.end}>root</span>
        </li>
      </ul>
      <p className={classes.hashes}>
        leaf <Id id={base64(event.leafHash)} length={12} /> root <Id id={checkpoint.root} length={12} />
      </p>
    </>
  );
}

function said({ range, side, sibling }: PathPart): string {
  const [start, end] = range;
  const leaves = end - start === 1 ? `entry ${start}` : `entries ${start} to ${end - 1}`;
  return `${side}: ${leaves}, ${base64(sibling).slice(0, 12)}…`;
}

/** Reading continues whatever the proof says; what is lost is trust, and there are people to ask. */
export function BreakHelp({ number }: { number: number | null }) {
  return (
    <div className={classes.advice}>
      <p>Reading still works and the check changed nothing. Do not repair anything; preserve the evidence:</p>
      <ul>
        <li>
          export the present state: <code>observatory export -o evidence.jsonl.gz</code>
        </li>
        <li>
          compare with a witness: its checkpoint of this log is signed too (
          <Link to="/forensics/$board" params={{ board: "log" }}>
            Chain and log
          </Link>
          )
        </li>
        <li>
          find the first break with the independent verifier: <code>observatory verify --data DIR</code>
        </li>
        {number !== null && (
          <li>
            inspect the event and its neighbours:{" "}
            <Link to="/forensics/$board" params={{ board: "audit" }} search={{ seq: String(number) }}>
              event {number.toLocaleString("en")}
            </Link>
          </li>
        )}
      </ul>
    </div>
  );
}
