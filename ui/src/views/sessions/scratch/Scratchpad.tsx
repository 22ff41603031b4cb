// The scratchpad: every agent's intents as they arrive, newest at the bottom. It follows the end unless
// scrolled up; then it shows how many arrived meanwhile.

import { Button, Select } from "@mantine/core";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useUrl } from "~/useUrl";
import { clockToSecond, exact } from "~/widgets/clock";
import { Empty } from "~/widgets/Panel";
import type { Graph, Step } from "../dag/graph";
import { BADGES, stateOf } from "../dag/paint";
import { linesOf, MAX_LINES } from "./intents";
import classes from "./Scratch.module.css";

export function Scratchpad({
  graph,
  at,
  selected,
  select,
}: {
  graph: Graph;
  at: number | null;
  selected: string | undefined;
  select: (step: Step) => void;
}) {
  const [url, setUrl] = useUrl();
  const [most, setMost] = useState(MAX_LINES);
  const { lines, older } = useMemo(
    () => linesOf(graph, { who: url.who, at, most }),
    [graph, url.who, at, most],
  );
  const box = useRef<HTMLDivElement>(null);
  const [sticks, setSticks] = useState(true);
  const left = useRef(lines.length);
  const last = lines.at(-1)?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line is what moves it
  useLayoutEffect(() => {
    if (sticks && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [sticks, last]);
  useEffect(() => {
    if (sticks) left.current = graph.steps.length;
  }, [sticks, graph.steps.length]);
  const fresh = sticks ? 0 : graph.steps.length - left.current;
  return (
    <section className={classes.pad} aria-label="Scratchpad">
      <div className={classes.bar}>
        <span className={classes.faint}>intents reported by agents</span>
        <Select
          size="xs"
          className={classes.who}
          aria-label="Agent"
          placeholder="all agents"
          clearable
          searchable
          data={graph.agents.map((agent) => agent.agent_id).sort()}
          value={url.who ?? null}
          onChange={(who) => setUrl({ who }, true)}
        />
      </div>
      <div
        ref={box}
        className={classes.lines}
        role="log"
        aria-label="Intents"
        onScroll={(event) => {
          const it = event.currentTarget;
          setSticks(it.scrollHeight - it.scrollTop - it.clientHeight < 24);
        }}
      >
        {lines.length === 0 && <Empty>No intents{url.who ? ` from ${url.who}` : ""} yet.</Empty>}
        {older > 0 && (
          <Button size="compact-xs" variant="subtle" onClick={() => setMost(most + MAX_LINES)}>
            {older.toLocaleString("en")} older
          </Button>
        )}
        {lines.map((step) => (
          <Line key={step.id} step={step} selected={step.id === selected} select={select} />
        ))}
      </div>
      {fresh > 0 && (
        <Button size="compact-xs" className={classes.fresh} onClick={() => setSticks(true)}>
          {fresh} new ↓
        </Button>
      )}
    </section>
  );
}

const Line = memo(function Line({
  step,
  selected,
  select,
}: {
  step: Step;
  selected: boolean;
  select: (step: Step) => void;
}) {
  const state = stateOf(step);
  return (
    <button
      type="button"
      className={classes.line}
      aria-pressed={selected}
      title={exact(step.at)}
      onClick={() => select(step)}
    >
      <time dateTime={step.at}>{clockToSecond(step.at)}</time>
      <span className={classes.agent}>{step.agent_id}</span>
      <span aria-hidden className={classes.mark} data-tone={state.tone}>
        {state.tone === "plain" ? BADGES[step.badge].mark : state.mark}
      </span>
      <span className={classes.said}>
        {step.intent}
        {state.tone !== "plain" && <em data-tone={state.tone}> · {state.word}</em>}
      </span>
    </button>
  );
});
