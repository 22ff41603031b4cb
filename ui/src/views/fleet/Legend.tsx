// The six states by mark, word and colour with the number of agents in each, and the edge styles. A click on
// a state finds the agents in it.
import type { NodeRecord } from "~/graph";
import { useUrl } from "~/useUrl";
import type { NodeState } from "~/widgets/format";
import { Mark } from "~/widgets/Mark";
import classes from "./Legend.module.css";

const STATES: readonly { state: NodeState; says: string }[] = [
  { state: "alert_entropy", says: "is looping" },
  { state: "schema_violation", says: "its last message broke the schema" },
  { state: "blocked", says: "paused, held, stopped or warned" },
  { state: "dead", says: "silent or evicted" },
  { state: "active", says: "sent something within 30 s" },
  { state: "idle", says: "sends nothing" },
];

export function Legend({ nodes }: { nodes: readonly NodeRecord[] }) {
  const [search, setUrl] = useUrl();
  const counts = new Map<NodeState, number>();
  for (const node of nodes) counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
  return (
    <section className={classes.legend} aria-label="Legend">
      <ul className={classes.states}>
        {STATES.map(({ state, says }) => {
          const text = `state:${state}`;
          const on = search.find === text;
          return (
            <li key={state}>
              <button
                type="button"
                aria-pressed={on}
                title={`${says}; click to find them`}
                onClick={() => setUrl({ find: on ? null : text })}
              >
                <Mark state={state} />
                <span className={classes.count}>{counts.get(state) ?? 0}</span>
              </button>
            </li>
          );
        })}
      </ul>
      <ul className={classes.edges} aria-label="Edges">
        <li>
          <i data-status="healthy" aria-hidden /> healthy
        </li>
        <li>
          <i data-status="alert" aria-hidden /> ! alert
        </li>
        <li>
          <i data-status="blocked" aria-hidden /> × blocked, dashed
        </li>
        <li>thicker: more messages · ring: load</li>
      </ul>
    </section>
  );
}
