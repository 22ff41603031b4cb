// What else concerns it: the session and step, what it followed from, and who stepped in.
import { Link } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import type { InterventionItem, MessageItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Panel, Shown } from "~/widgets/Panel";
import { useNames } from "~/widgets/people";
import classes from "./Message.module.css";

export function Related({ message }: { message: MessageItem }) {
  const { session_id } = message;
  const session = useAnswer("/v1/sessions/{session_id}", undefined, { params: { session_id } });
  const acts = useAnswer("/v1/sessions/{session_id}/interventions", undefined, { params: { session_id } });
  const goal = session.data?.goal;
  return (
    <Panel title="What belongs to it">
      <div className={classes.part}>
        <dl className={classes.facts} data-narrow>
          <div>
            <dt>session</dt>
            <dd>
              <Link to="/sessions/$sessionId" params={{ sessionId: session_id }}>
                {goal ? inert(goal) : session_id}
              </Link>
            </dd>
          </div>
          <div>
            <dt>step</dt>
            <dd>
              <Link
                to="/sessions/$sessionId"
                params={{ sessionId: session_id }}
                search={{ step: message.step_id } as never}
              >
                in the causal graph
              </Link>{" "}
              <Id id={message.step_id} length={16} />
            </dd>
          </div>
          <div>
            <dt>followed from</dt>
            <dd>
              {message.parents.length === 0 ? "nothing: it is a beginning" : <Parents message={message} />}
            </dd>
          </div>
          <div>
            <dt>said with it</dt>
            <dd>
              <Link to="/forensics" search={{ q: `session:${session_id}` } as never}>
                all messages of the session
              </Link>
            </dd>
          </div>
        </dl>
        <Shown asked={acts} rows={2}>
          {({ items }) => <Acts items={items.filter((one) => one.message_id === message.message_id)} />}
        </Shown>
      </div>
    </Panel>
  );
}

function Parents({ message }: { message: MessageItem }) {
  return (
    <ul className={classes.plain}>
      {message.parents.slice(0, 20).map((parent) => (
        <li key={parent}>
          <Link to="/forensics/message/$messageId" params={{ messageId: parentName(message, parent) }}>
            {inert(parent)}
          </Link>
          {message.parent_inferred && <span className={classes.faint}> (inferred by the gateway)</span>}
        </li>
      ))}
      {message.parents.length > 20 && <li>and {message.parents.length - 20} more</li>}
    </ul>
  );
}

/** A step is named in its session. */
function parentName(message: MessageItem, parent: string): string {
  return parent.startsWith("msg_") || parent.includes("/") ? parent : `${message.session_id}/${parent}`;
}

function Acts({ items }: { items: readonly InterventionItem[] }) {
  const name = useNames();
  if (items.length === 0) return <p className={classes.faint}>Nobody stepped in.</p>;
  return (
    <ul className={classes.plain} aria-label="Who stepped in">
      {items.map((one) => (
        <li key={one.intervention_id}>
          <strong>◆ {one.command}</strong> by {name(one.operator_id)}, <Ago at={one.issued_at} />
          {one.note && <>: {inert(one.note)}</>}
          {one.reversed_at && ", taken back"}
        </li>
      ))}
    </ul>
  );
}
