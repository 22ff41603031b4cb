// Liveness of an instance: mark, word and colour. As dots, one per instance, the mark alone with the word on
// hover.
import type { AgentItem } from "~/protocol/openapi";
import classes from "./LivenessMark.module.css";
import { LIVES, type Liveness } from "./registryRows";

/** Dots that fit in a row; beyond that, fewer and the number of the rest. */
const [DOTS, FEW] = [6, 4];

export function LivenessMark({ live }: { live: Liveness }) {
  const sign = LIVES[live];
  return (
    <span className={classes.life} data-tone={sign.tone} title={sign.means}>
      <span aria-hidden>{sign.mark}</span> {sign.word}
    </span>
  );
}

/** Worst first: only some are drawn, and unhealthy ones must be among them. */
export function Dots({ agents }: { agents: readonly AgentItem[] }) {
  const order: Liveness[] = ["zombie", "evicted", "unknown", "healthy"];
  const sorted = [...agents].sort((a, b) => order.indexOf(a.liveness) - order.indexOf(b.liveness));
  const shown = sorted.length > DOTS ? FEW : DOTS;
  const more = sorted.length - shown;
  return (
    <span className={classes.dots} aria-hidden>
      {sorted.slice(0, shown).map((agent) => (
        <span
          key={agent.entity_id}
          className={classes.dot}
          data-tone={LIVES[agent.liveness].tone}
          title={`${agent.agent_id}: ${LIVES[agent.liveness].word}`}
        >
          {LIVES[agent.liveness].mark}
        </span>
      ))}
      {more > 0 && <span className={classes.more}>+{more}</span>}
    </span>
  );
}
