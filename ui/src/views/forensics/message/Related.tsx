// Related items: the session and step, causal parents, and interventions.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { InterventionItem, MessageItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Loaded, Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import classes from "./Message.module.css";

export function Related({ message }: { message: MessageItem }) {
  const { session_id } = message;
  const session = useApi("/v1/sessions/{session_id}", undefined, { params: { session_id } });
  const acts = useApi("/v1/sessions/{session_id}/interventions", undefined, { params: { session_id } });
  const goal = session.data?.goal;
  return (
    <Panel title="Related">
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
              {message.parents.length === 0 ? "nothing: this is a root" : <Parents message={message} />}
            </dd>
          </div>
          <div>
            <dt>messages</dt>
            <dd>
              <Link to="/forensics" search={{ q: `session:${session_id}` } as never}>
                all messages of the session
              </Link>
            </dd>
          </div>
        </dl>
        <Loaded query={acts} rows={2}>
          {({ items }) => <Acts items={items.filter((one) => one.message_id === message.message_id)} />}
        </Loaded>
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
  if (items.length === 0) return <p className={classes.faint}>No interventions.</p>;
  return (
    <ul className={classes.plain} aria-label="Interventions">
      {items.map((one) => (
        <li key={one.intervention_id}>
          <strong>◆ {one.command}</strong> by {name(one.operator_id)}, <Ago at={one.issued_at} />
          {one.note && <>: {inert(one.note)}</>}
          {one.reversed_at && ", undone"}
        </li>
      ))}
    </ul>
  );
}
