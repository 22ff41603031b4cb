// Details of one step: intent, alternatives, reasoning, action, citations, memory, cost, interventions,
// reach. Parts known from the graph show at once, the rest when the gateway has answered.
import { Button, CopyButton } from "@mantine/core";
import { useEffect, useRef } from "react";
import { refetch, useApi } from "~/api/queries";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { firstGate, firstLoop, type Graph, type Step } from "../dag/graph";
import { BADGES, badgeWord, stateOf } from "../dag/paint";
import { flagText } from "../dag/StepNode";
import type { Highlight } from "./highlight";
import classes from "./Step.module.css";
import { StepStory } from "./StepStory";
import type { StepDetails } from "./stepDetails";

export interface StepPanelProps {
  graph: Graph;
  select: (step: Step) => void;
  sessionId: string;
  step: Step | undefined;
  branch: number;
  goTo: (sequence_number: number) => void;
  light: (lit: Highlight | null) => void;
  turn: (way: "older" | "newer") => void;
  /** Increases when the user opens the step for reading: the panel takes the focus. */
  opened: number;
}

export function StepPanel({
  graph,
  select,
  sessionId,
  step,
  branch,
  goTo,
  light,
  turn,
  opened,
}: StepPanelProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (opened > 0) heading.current?.focus();
  }, [opened]);
  if (!step)
    return (
      <section className={classes.panel} aria-label="Step">
        <Begin {...{ graph, select }} />
      </section>
    );
  const state = stateOf(step);
  const badge = BADGES[step.badge];
  return (
    <section className={classes.panel} aria-label="Step">
      <header className={classes.head}>
        <h2 ref={heading} tabIndex={-1} className={classes.title}>
          {step.agent_id ?? "unknown"}
        </h2>
        <Tag tone={badge.tone}>
          <span aria-hidden>{badge.mark}</span> {badgeWord(step)}
        </Tag>
        {(step.status !== null || state.tone !== "plain") && (
          <Tag tone={state.tone}>
            <span aria-hidden>{state.mark}</span> {state.word}
          </Tag>
        )}
        {step.low_confidence && <Tag tone="violation">⚑ low confidence</Tag>}
        <span className={classes.when}>
          #{step.sequence_number} · <Ago at={step.at} />
        </span>
      </header>
      <div className={classes.sub}>
        <Id id={step.step_id} />
        <CopyButton value={linkTo(sessionId, step)}>
          {({ copied, copy }) => (
            <button type="button" className={classes.link} onClick={copy}>
              {copied ? "copied" : "copy link to step"}
            </button>
          )}
        </CopyButton>
        <a className={classes.link} href={`/v1/messages/${encodeURIComponent(step.message_id)}?raw=true`}>
          exact bytes
        </a>
        <Button
          size="compact-xs"
          variant="subtle"
          className={classes.turn}
          aria-label="older step"
          onClick={() => turn("older")}
        >
          [
        </Button>
        <Button size="compact-xs" variant="subtle" aria-label="newer step" onClick={() => turn("newer")}>
          ]
        </Button>
      </div>
      {step.flags.length > 0 && (
        <ul className={classes.flags}>
          {step.flags.map((flag) => (
            <li key={flag}>⚠ {flagText(flag)}</li>
          ))}
        </ul>
      )}
      <Whole key={step.message_id} {...{ sessionId, step, branch, goTo, light }} />
    </section>
  );
}

/** Nothing selected yet: shortcuts to interesting steps. */
function Begin({ graph, select }: { graph: Graph; select: (step: Step) => void }) {
  const worth: [string, Step | undefined][] = [
    ["Jump to open gate (g)", firstGate(graph)],
    ["Jump to loop (l)", firstLoop(graph)],
    ["First failure", graph.steps.find((step) => step.status === "failure")],
    ["First low-confidence step", graph.steps.find((step) => step.low_confidence)],
    ["Newest step ([)", graph.steps.at(-1)],
  ];
  return (
    <>
      <Empty>Select a step in the graph to see what it did and why.</Empty>
      <div className={classes.begin}>
        {worth.map(
          ([words, step]) =>
            step && (
              <Button key={words} size="compact-sm" variant="default" onClick={() => select(step)}>
                {words}
              </Button>
            ),
        )}
      </div>
    </>
  );
}

/** A link to this step, without the reader's own panels. */
function linkTo(sessionId: string, step: Step): string {
  return `${location.origin}/sessions/${encodeURIComponent(sessionId)}?step=${encodeURIComponent(step.step_id)}`;
}

const PATH = "/v1/sessions/{session_id}/steps/{step}";

function Whole({
  sessionId,
  step,
  branch,
  goTo,
  light,
}: Omit<StepPanelProps, "step" | "opened" | "turn" | "graph" | "select"> & { step: Step }) {
  const query = useApi(PATH, undefined, { params: { session_id: sessionId, step: step.message_id } });
  const seen = useRef(step.version);
  useEffect(() => {
    if (seen.current === step.version) return;
    seen.current = step.version;
    refetch(PATH);
  }, [step.version]);
  return (
    <div className={classes.story}>
      <Loaded query={query} rows={9}>
        {(data) => <StepStory step={data as unknown as StepDetails} {...{ branch, goTo, light }} />}
      </Loaded>
    </div>
  );
}
