// A step as a card: agent, intent, tool, and problems. Zoomed out, only colour, mark and agent are drawn: a
// thousand cards must stay cheap.
import { Handle, type NodeProps, Position } from "@xyflow/react";
import { createContext, memo, useContext } from "react";
import { money } from "~/widgets/format";
import classes from "./Dag.module.css";
import { isRepeating, type Step } from "./graph";
import { BADGES, badgeWord, type Paint, stateOf } from "./paint";

export interface StepData extends Record<string, unknown> {
  step: Step;
  paint: Paint;
  branch: number;
  later: boolean;
  found: boolean | null;
  lit: string | null;
  look: string;
}

/** Zoomed-out flag, provided once for all cards, so that a pan re-renders none of them. */
export const Far = createContext(false);

export const StepNode = memo(function StepNode({ data, selected }: NodeProps) {
  const { step, paint, branch, later, found, lit, look } = data as StepData;
  const far = useContext(Far);
  const state = stateOf(step);
  const badge = BADGES[step.badge];
  return (
    <div
      className={classes.card}
      data-tone={paint.tone}
      data-level={paint.level}
      data-selected={selected || undefined}
      data-later={later || undefined}
      data-dim={found === false || undefined}
      data-lit={lit ?? undefined}
      data-held={step.state === "held" || undefined}
      data-orphan={step.orphan || undefined}
    >
      <Handle type="target" position={Position.Top} isConnectable={false} />
      {far ? (
        <div className={classes.far}>
          <span aria-hidden className={classes.farMark}>
            {paint.mark || state.mark}
          </span>
          <span>{step.agent_id}</span>
          <span className="unseen">
            {step.intent}, {state.word}
          </span>
        </div>
      ) : (
        <>
          <div className={classes.top}>
            <span className={classes.agent}>{step.agent_id ?? "unknown"}</span>
            <span className={classes.badge} data-tone={badge.tone}>
              <span aria-hidden>{badge.mark}</span> {badgeWord(step)}
            </span>
          </div>
          <p className={classes.intent}>{step.intent ?? step.message_type}</p>
          <div className={classes.foot}>
            {step.tool && <code className={classes.tool}>{step.tool}</code>}
            <span className={classes.state} data-tone={state.tone} title={step.held_because ?? state.word}>
              <span aria-hidden>{state.mark}</span>{" "}
              {state.tone === "plain" ? <span className="unseen">{state.word}</span> : state.word}
            </span>
            {step.confidence !== null && (
              <span data-tone={step.low_confidence ? "violation" : undefined} className={classes.figure}>
                {step.low_confidence && (
                  <span title="low confidence">
                    <span aria-hidden>⚑ </span>
                    <span className="unseen">low confidence </span>
                  </span>
                )}
                {Math.round(step.confidence * 100)} %
              </span>
            )}
            {isRepeating(step) && state.mark !== "⟲" && (
              <span className={classes.figure} data-tone="alert" title={`entropy ${step.entropy_score}`}>
                <span aria-hidden>⟲</span>
                <span className="unseen">repetitive</span>
              </span>
            )}
            {step.flags.length > 0 && (
              <span
                className={classes.figure}
                data-tone="violation"
                title={step.flags.map(flagText).join("; ")}
              >
                ⚠ {step.flags.length > 1 ? step.flags.length : ""}
              </span>
            )}
            <span className={classes.cost}>
              {look === "cost" ? money(branch) : step.cost > 0 ? money(step.cost) : ""}
            </span>
          </div>
          {paint.tone !== "plain" && look !== "state" && look !== "cost" && (
            <span className={classes.corner} data-tone={paint.tone} data-level={paint.level}>
              <span aria-hidden>{paint.mark}</span> {look === "infection" ? paint.word : ""}
            </span>
          )}
        </>
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
});

const FLAGS: Record<string, string> = {
  waiting_for_parent: "its parent is not known yet",
  attached: "its parent never arrived; attached to the first root",
  parent_unknown: "one of its parents is missing",
  parent_elsewhere: "its parent is a step of another session",
  cycle_refused: "its parent descends from it; that edge is refused",
  cost_decreased: "its cumulative cost is lower than before",
  rewritten: "rewritten by a person",
  shredded: "content shredded",
};

export function flagText(flag: string): string {
  return FLAGS[flag] ?? flag;
}
