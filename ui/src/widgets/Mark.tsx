// A state by mark, word and colour: never by colour alone.

import { type NodeState, STATE_SIGNS } from "./format";
import classes from "./Mark.module.css";

export function Mark({ state, bare = false }: { state: NodeState; bare?: boolean }) {
  const sign = STATE_SIGNS[state] ?? STATE_SIGNS.idle;
  return (
    <span className={classes.mark} data-tone={sign.tone} title={sign.word}>
      <span aria-hidden className={classes.glyph}>
        {sign.mark}
      </span>
      {bare ? <span className="unseen">{sign.word}</span> : sign.word}
    </span>
  );
}

/** Any short word with a tone: good, active, alert, violation, blocked, idle, dead. */
export function Tag({ tone, children }: { tone: string; children: React.ReactNode }) {
  return (
    <span className={classes.tag} data-tone={tone}>
      {children}
    </span>
  );
}
