// The sections of a step, in reading order.
import type { ReactNode } from "react";
import { Ago, Id, Money } from "~/widgets/Figures";
import { ms, short } from "~/widgets/format";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { useNames } from "~/widgets/users";
import { acknowledged } from "../console/interventionState";
import { BlastAndCauses, StepLink } from "./BlastAndCauses";
import { GateHere } from "./Gate";
import type { Highlight } from "./highlight";
import { MemoryChanges } from "./MemoryChanges";
import { Notes, ReviewStep } from "./Notes";
import { StepProof } from "./Proof";
import { Reasoning } from "./Reasoning";
import classes from "./Step.module.css";
import { jsonOf, linkOf, midSentence, type StepDetails } from "./stepDetails";

interface Props {
  step: StepDetails;
  branch: number;
  goTo: (sequence_number: number) => void;
  light: (lit: Highlight | null) => void;
}

export function StepStory({ step, branch, goTo, light }: Props) {
  const { reasoning } = step;
  const isGate = step.gate === "open" && step.state === "held";
  return (
    <>
      {isGate && (
        <Chapter title="Waiting for approval">
          <GateHere step={step} />
        </Chapter>
      )}
      <Chapter title="Intent">
        <p className={classes.intent}>{reasoning.intent ?? step.intent ?? step.message_type}</p>
        {step.input.parents.length > 0 && (
          <p className={classes.none}>
            after{" "}
            {step.input.parents.map((parent, n) => (
              <span key={parent.id}>
                {n > 0 && ", "}
                <StepLink
                  place={{ sequence_number: parent.sequence_number, session_id: step.session_id }}
                  sessionId={step.session_id}
                  goTo={goTo}
                />{" "}
                of {parent.agent_id}
              </span>
            ))}
            {step.recipient && ` · to ${step.recipient}`}
          </p>
        )}
      </Chapter>
      <Chapter title="Alternatives">
        <Alternatives step={step} />
      </Chapter>
      <Chapter title="Reasoning">
        <Reasoning lines={reasoning.chain} />
      </Chapter>
      <Action step={step} />
      {reasoning.citations.length > 0 && (
        <Chapter title="Citations">
          <ul className={classes.plain}>
            {reasoning.citations.map((citation, n) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: one source may be named twice
              <li key={n}>
                {linkOf(citation.uri) ? (
                  <a
                    href={linkOf(citation.uri) ?? undefined}
                    target="_blank"
                    rel="noreferrer"
                    className={classes.link}
                  >
                    {citation.label ?? citation.uri}
                  </a>
                ) : (
                  <span className="mono">{citation.label ?? citation.uri}</span>
                )}
                {citation.ref_type && <span className={classes.none}> {citation.ref_type}</span>}
              </li>
            ))}
          </ul>
        </Chapter>
      )}
      <Chapter title="Memory">
        <MemoryChanges step={step} goTo={goTo} />
      </Chapter>
      <Chapter title="Cost">
        <CostFacts step={step} branch={branch} />
      </Chapter>
      <Interventions step={step} />
      <Chapter title="Proof">
        <StepProof step={step} />
      </Chapter>
      {step.low_confidence && (
        <Chapter title="Review">
          <ReviewStep details={step} />
        </Chapter>
      )}
      <Chapter title="Blast radius and root cause">
        <BlastAndCauses sessionId={step.session_id} sequence={step.sequence_number} {...{ goTo, light }} />
      </Chapter>
      <Chapter title="Notes">
        <Notes details={step} />
      </Chapter>
    </>
  );
}

function Chapter({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={classes.chapter} aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function Alternatives({ step }: { step: StepDetails }) {
  const { chosen, alternatives } = step.reasoning;
  if (alternatives.length === 0) return <p className={classes.none}>No alternatives recorded</p>;
  return (
    <>
      <p>
        Chose <strong>{chosen}</strong> over
      </p>
      <ul className={classes.plain}>
        {alternatives.map((one, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an agent may name an option twice
          <li key={n}>
            <strong>{one.option}</strong>
            {one.why_not && <> because {midSentence(one.why_not)}</>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Action({ step }: { step: StepDetails }) {
  const input = jsonOf(step.input.tool_input);
  const output = jsonOf(step.output.text);
  const { duration_ms, status, payload } = step.output;
  return (
    <Chapter title="Action">
      <p>
        {step.tool ? (
          <code>{step.tool}</code>
        ) : step.message_type === "decision_log" ? (
          "No tool call."
        ) : (
          step.message_type
        )}{" "}
        {status && <Tag tone={status === "failure" ? "alert" : "idle"}>{status}</Tag>}{" "}
        {duration_ms !== null && <span className={classes.none}>took {ms(duration_ms)}</span>}
      </p>
      {input && (
        <>
          <h4 className={classes.small}>Input</h4>
          <Json value={"json" in input ? input.json : input.text} label="Tool input" />
        </>
      )}
      {output && (
        <>
          <h4 className={classes.small}>Output</h4>
          {"json" in output ? (
            <Json value={output.json} label="Tool output" />
          ) : (
            <p className={classes.out}>{output.text}</p>
          )}
        </>
      )}
      {payload !== null && payload !== undefined && <Json value={payload} label="Message content" />}
    </Chapter>
  );
}

const NO_SCORE = "none: the gateway was unreachable";

function CostFacts({ step, branch }: { step: StepDetails; branch: number }) {
  const rows: [string, ReactNode][] = [
    ["this step", <Money key="c" dollars={step.cost} />],
    ["branch", <Money key="b" dollars={branch} />],
    ["tokens", step.tokens == null ? "not reported" : short(step.tokens)],
    ["took", ms(step.output.duration_ms)],
    [
      "confidence",
      step.confidence === null || step.confidence === undefined
        ? "–"
        : `${Math.round(step.confidence * 100)} %`,
    ],
    ["entropy", step.entropy_score?.toFixed(2) ?? "–"],
    ["strategy", step.reasoning.strategy ?? "–"],
    ...(step.gateway_away ? ([["verdict", NO_SCORE]] as [string, ReactNode][]) : []),
    ["model", [step.provider, step.model].filter(Boolean).join(" · ") || "–"],
    ["version", step.capability_version ?? "–"],
  ];
  return (
    <dl className={classes.spent}>
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Interventions({ step }: { step: StepDetails }) {
  const name = useNames();
  const { interventions, hold, rewrites } = step;
  if (interventions.length === 0 && !hold && rewrites.length === 0) return null;
  return (
    <Chapter title="Interventions">
      <ul className={classes.plain}>
        {hold && (
          <li>
            Held <Ago at={hold.held_at} />: {hold.reason}.{" "}
            {hold.ended_at ? (
              <>
                {hold.state.replaceAll("_", " ")} by {name(hold.ended_by)} <Ago at={hold.ended_at} />.
              </>
            ) : (
              "Still held."
            )}
          </li>
        )}
        {interventions.map((one) => (
          <li key={one.id}>
            <strong>◆ {one.command}</strong> by {name(one.operator_id)}, <Ago at={one.at} />
            {one.reversed_at
              ? ", undone"
              : one.confirmed_at
                ? ", confirmed"
                : one.acknowledged_at
                  ? `, ${acknowledged(one.proven)}`
                  : ""}
            {one.before_hash && one.after_hash && (
              <>
                {" "}
                <Id id={one.before_hash} length={10} /> → <Id id={one.after_hash} length={10} />
              </>
            )}
          </li>
        ))}
      </ul>
    </Chapter>
  );
}
