// A message held at a gate: why, what it would do, the exact bytes an answer is bound to, and the answers.
// The inbox and the drill-down show the same card.
import { useExact } from "./exact";
import { Id, Left } from "./Figures";
import { GateAnswer } from "./GateAnswer";
import classes from "./GateCard.module.css";
import { Tag } from "./Mark";
import { Shown } from "./Panel";
import { useNames } from "./people";
import type { Gate } from "./waiting";

export { ExactBytes } from "./ExactBytes";

const RISKS: Record<string, string> = {
  low: "idle",
  medium: "blocked",
  high: "violation",
  critical: "alert",
};

/** `keyed` puts a, e and r among the page's keys: for one card at a time. `done` runs once an answer stands. */
export function GateCard({ gate, done, keyed = false }: { gate: Gate; done?: () => void; keyed?: boolean }) {
  const exact = useExact(gate.message_id, gate.session_id, gate.action_digest);
  return (
    <section className={classes.card} aria-label={`Gate of ${gate.agent_id ?? "an agent"}`}>
      <Facts gate={gate} />
      <Shown asked={exact} rows={8}>
        {(content) => <GateAnswer key={gate.action_digest} {...{ gate, content, done, keyed }} />}
      </Shown>
    </section>
  );
}

function Facts({ gate }: { gate: Gate }) {
  const name = useNames();
  return (
    <dl className={classes.facts}>
      <dt>Why it waits</dt>
      <dd>{gate.why}</dd>
      <dt>From → to</dt>
      <dd>
        {gate.agent_id ?? "unknown"} → {gate.recipient ?? "its session"}
        {gate.tool && (
          <>
            {" "}
            by <code>{gate.tool}</code>
          </>
        )}
      </dd>
      {gate.risk && (
        <>
          <dt>Risk</dt>
          <dd>
            <Tag tone={RISKS[gate.risk] ?? "idle"}>{gate.risk}</Tag>
          </dd>
        </>
      )}
      {gate.deadline && (
        <>
          <dt>Deadline</dt>
          <dd>
            <Left until={gate.deadline} />, then {gate.on_expiry === "approve" ? "forwarded" : "rejected"}
          </dd>
        </>
      )}
      <dt>Approvals</dt>
      <dd>
        {gate.quorum > 1 ? `${gate.approvals.length} of ${gate.quorum} people` : "one person decides"}
        {gate.approvals.map((id, n) => (
          <span key={id} title={id}>
            {n === 0 ? ": " : ", "}
            {name(id)}
          </span>
        ))}
      </dd>
      {gate.message_id && (
        <>
          <dt>Message</dt>
          <dd>
            <Id id={gate.message_id} length={26} />
          </dd>
        </>
      )}
    </dl>
  );
}
