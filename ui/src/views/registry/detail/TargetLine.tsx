// One target with its weight: a slider and a number field for the same value.
import { CloseButton, Slider, TextInput } from "@mantine/core";
import type { AgentItem } from "~/protocol/openapi";
import { isOf, plain } from "../weights";
import classes from "./Detail.module.css";

interface Props {
  target: string;
  text: string;
  fault: string | undefined;
  agents: readonly AgentItem[];
  set: (text: string) => void;
  remove: () => void;
}

export function TargetLine({ target, text, fault, agents, set, remove }: Props) {
  const theirs = agents.filter((agent) => isOf(agent, target) && agent.liveness !== "evicted");
  const healthy = theirs.filter((agent) => agent.liveness === "healthy").length;
  const value = Number(text);
  const name = plain(target);
  return (
    <li className={classes.target}>
      <span className={classes.targetName} title={target}>
        {target.startsWith("cluster:") ? "" : "agent "}
        {name}
      </span>
      <span className={classes.faint}>
        {theirs.length === 0 ? "no instance" : `${healthy} of ${theirs.length} healthy`}
      </span>
      <CloseButton size="xs" aria-label={`Remove ${name}`} onClick={remove} />
      <Slider
        className={classes.slider}
        size="sm"
        min={0}
        max={Math.max(100, Number.isFinite(value) ? value : 0)}
        step={1}
        value={Number.isFinite(value) && value >= 0 ? value : 0}
        label={null}
        thumbLabel={`Weight of ${name}`}
        onChange={(next) => set(String(next))}
      />
      <TextInput
        className={classes.number}
        size="xs"
        inputMode="decimal"
        aria-label={`Weight of ${name} as a number`}
        value={text}
        error={fault}
        onChange={(event) => set(event.currentTarget.value)}
      />
    </li>
  );
}
