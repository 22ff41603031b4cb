// How an instance is: by mark, word and colour. As dots, one an instance, the mark alone with the word on hover.
import type { AgentItem } from "~/protocol/openapi";
import classes from "./Life.module.css";
import { LIVES, type Liveness } from "./pages";

/** In a row there is room for so many; of more than that, fewer and their number. */
const [DOTS, FEW] = [6, 4];

export function Life({ live }: { live: Liveness }) {
  const sign = LIVES[live];
  return (
    <span className={classes.life} data-tone={sign.tone} title={sign.means}>
      <span aria-hidden>{sign.mark}</span> {sign.word}
    </span>
  );
}

/** Worst first: of many only so many are drawn, and trouble must be among them. */
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
