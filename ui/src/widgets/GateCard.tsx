// A message held at a gate: reason, action, the exact bytes an approval is bound to, and the buttons. The
// inbox and the session page show the same card.
import { useExact } from "./exactBytes";
import { Id, Left } from "./Figures";
import { GateAnswer } from "./GateAnswer";
import classes from "./GateCard.module.css";
import { Tag } from "./Mark";
import { Loaded } from "./Panel";
import type { Gate } from "./pendingItems";
import { useNames } from "./users";

export { ExactBytes } from "./ExactBytes";

const RISKS: Record<string, string> = {
  low: "idle",
  medium: "blocked",
  high: "violation",
  critical: "alert",
};

/** `keyed` registers the keys a, e and r: for one card at a time. `done` runs once a decision is made. */
export function GateCard({ gate, done, keyed = false }: { gate: Gate; done?: () => void; keyed?: boolean }) {
  const exact = useExact(gate.message_id, gate.session_id, gate.action_digest);
  return (
    <section className={classes.card} aria-label={`Gate of ${gate.agent_id ?? "an agent"}`}>
      <Facts gate={gate} />
      <Loaded query={exact} rows={8}>
        {(content) => <GateAnswer key={gate.action_digest} {...{ gate, content, done, keyed }} />}
      </Loaded>
    </section>
  );
}

function Facts({ gate }: { gate: Gate }) {
  const name = useNames();
  return (
    <dl className={classes.facts}>
      <dt>Reason</dt>
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
        {gate.quorum > 1 ? `${gate.approvals.length} of ${gate.quorum} approvals` : "1 approval required"}
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
