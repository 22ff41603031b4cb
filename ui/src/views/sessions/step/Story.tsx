// The chapters of a step, in the order one asks them.
import type { ReactNode } from "react";
import { Ago, Id, Money } from "~/widgets/Figures";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { useNames } from "~/widgets/people";
import { ms, short } from "~/widgets/words";
import { acknowledged } from "../console/standing";
import { GateHere } from "./Gate";
import type { Lit } from "./lit";
import { Notes, ReviewStep } from "./Notes";
import { StepProof } from "./Proof";
import { Place, Reach } from "./Reach";
import { Reasoning } from "./Reasoning";
import { Remembered } from "./Remembered";
import classes from "./Step.module.css";
import { jsonOf, linkOf, midSentence, type Told } from "./told";

interface Props {
  told: Told;
  branch: number;
  goTo: (sequence_number: number) => void;
  light: (lit: Lit | null) => void;
}

export function Story({ told, branch, goTo, light }: Props) {
  const { reasoning } = told;
  const isGate = told.gate === "open" && told.state === "held";
  return (
    <>
      {isGate && (
        <Chapter title="Waits for you">
          <GateHere told={told} />
        </Chapter>
      )}
      <Chapter title="What for">
        <p className={classes.intent}>{reasoning.intent ?? told.intent ?? told.message_type}</p>
        {told.input.parents.length > 0 && (
          <p className={classes.none}>
            after{" "}
            {told.input.parents.map((parent, n) => (
              <span key={parent.id}>
                {n > 0 && ", "}
                <Place
                  place={{ sequence_number: parent.sequence_number, session_id: told.session_id }}
                  sessionId={told.session_id}
                  goTo={goTo}
                />{" "}
                of {parent.agent_id}
              </span>
            ))}
            {told.recipient && ` · to ${told.recipient}`}
          </p>
        )}
      </Chapter>
      <Chapter title="What it considered">
        <Considered told={told} />
      </Chapter>
      <Chapter title="How it reasoned">
        <Reasoning lines={reasoning.chain} />
      </Chapter>
      <Did told={told} />
      {reasoning.citations.length > 0 && (
        <Chapter title="What it leans on">
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
      <Chapter title="What changed in memory">
        <Remembered told={told} goTo={goTo} />
      </Chapter>
      <Chapter title="What it cost">
        <Spent told={told} branch={branch} />
      </Chapter>
      <Intervened told={told} />
      <Chapter title="Proof">
        <StepProof told={told} />
      </Chapter>
      {told.low_confidence && (
        <Chapter title="Review">
          <ReviewStep told={told} />
        </Chapter>
      )}
      <Chapter title="How far it went, where it came from">
        <Reach sessionId={told.session_id} sequence={told.sequence_number} {...{ goTo, light }} />
      </Chapter>
      <Chapter title="Notes">
        <Notes told={told} />
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

function Considered({ told }: { told: Told }) {
  const { chosen, alternatives } = told.reasoning;
  if (alternatives.length === 0) return <p className={classes.none}>It told no alternatives.</p>;
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

function Did({ told }: { told: Told }) {
  const input = jsonOf(told.input.tool_input);
  const output = jsonOf(told.output.text);
  const { duration_ms, status, payload } = told.output;
  return (
    <Chapter title="What it did">
      <p>
        {told.tool ? (
          <code>{told.tool}</code>
        ) : told.message_type === "decision_log" ? (
          "No tool."
        ) : (
          told.message_type
        )}{" "}
        {status && <Tag tone={status === "failure" ? "alert" : "idle"}>{status}</Tag>}{" "}
        {duration_ms !== null && <span className={classes.none}>took {ms(duration_ms)}</span>}
      </p>
      {input && (
        <>
          <h4 className={classes.small}>in</h4>
          <Json value={"json" in input ? input.json : input.text} label="Tool input" />
        </>
      )}
      {output && (
        <>
          <h4 className={classes.small}>out</h4>
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

const UNJUDGED = "none: it was done while the gateway was away";

function Spent({ told, branch }: { told: Told; branch: number }) {
  const rows: [string, ReactNode][] = [
    ["this step", <Money key="c" dollars={told.cost} />],
    ["its branch", <Money key="b" dollars={branch} />],
    ["tokens", told.tokens == null ? "not told" : short(told.tokens)],
    ["took", ms(told.output.duration_ms)],
    [
      "confidence",
      told.confidence === null || told.confidence === undefined
        ? "–"
        : `${Math.round(told.confidence * 100)} %`,
    ],
    ["entropy", told.entropy_score?.toFixed(2) ?? "–"],
    ["strategy", told.reasoning.strategy ?? "–"],
    ...(told.gateway_away ? ([["verdict", UNJUDGED]] as [string, ReactNode][]) : []),
    ["model", [told.provider, told.model].filter(Boolean).join(" · ") || "–"],
    ["version", told.capability_version ?? "–"],
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

function Intervened({ told }: { told: Told }) {
  const name = useNames();
  const { interventions, hold, rewrites } = told;
  if (interventions.length === 0 && !hold && rewrites.length === 0) return null;
  return (
    <Chapter title="Who stepped in">
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
              ? ", taken back"
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
