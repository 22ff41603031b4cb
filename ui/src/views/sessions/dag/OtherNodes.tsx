// The two other shapes of the graph: a run of steps folded into one card, and interventions as diamonds.
import { Handle, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { money } from "~/widgets/format";
import { acknowledged } from "../console/interventionState";
import type { Run } from "./collapse";
import classes from "./Dag.module.css";
import type { Command } from "./graph";

export interface RunData extends Record<string, unknown> {
  run: Run;
}

export const RunNode = memo(function RunNode({ data }: NodeProps) {
  const { run } = data as RunData;
  const cost = run.steps.reduce((sum, step) => sum + step.cost, 0);
  return (
    <div className={classes.card} data-tone="plain" data-run>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <div className={classes.top}>
        <span className={classes.agent}>{run.agent_id}</span>
        <span className={classes.badge}>click to expand</span>
      </div>
      <p className={classes.intent}>
        {run.steps.length} steps of {run.agent_id}: {run.steps[0]?.intent}
      </p>
      <div className={classes.foot}>
        <span className={classes.cost}>{money(cost)}</span>
      </div>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
});

export interface DiamondData extends Record<string, unknown> {
  commands: Command[];
}

export const DiamondNode = memo(function DiamondNode({ data }: NodeProps) {
  const { commands } = data as DiamondData;
  const last = commands.at(-1);
  return (
    <div className={classes.diamond} title={commands.map(commandText).join("\n")}>
      <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden>
        <path d="M10 1 19 10 10 19 1 10Z" />
      </svg>
      <span>
        {last?.command}
        {commands.length > 1 ? ` ×${commands.length}` : ""}
      </span>
    </div>
  );
});

export function commandText(command: Command): string {
  const end = command.reversed_at
    ? ", undone"
    : command.confirmed_at
      ? ", confirmed"
      : command.acknowledged_at
        ? `, ${acknowledged(command.proven)}`
        : "";
  return `${command.command} by ${command.operator_id}${end}`;
}
