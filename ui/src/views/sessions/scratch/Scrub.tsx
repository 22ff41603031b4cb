// The state scrub: any moment of the session, by its steps. The graph greys later steps, Memory shows the
// state at that moment; play advances step by step. `at` in the URL is a sequence number; none means now.
import { Button } from "@mantine/core";
import { useEffect, useRef } from "react";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import type { Graph } from "../dag/graph";
import { placeAt } from "./intents";
import classes from "./Scratch.module.css";

const STEP_MS = 420;

export function Scrub({ graph, at }: { graph: Graph; at: number | null }) {
  const [url, setUrl] = useUrl();
  const { steps } = graph;
  const here = placeAt(steps, at);
  const playing = url.play === "time";
  const latest = useRef({ steps, here });
  latest.current = { steps, here };

  const to = (place: number, more: Record<string, string | null> = {}) => {
    const step = steps[place];
    if (step) setUrl({ at: String(step.sequence_number), ...more }, true);
  };
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      const { steps: all, here: now } = latest.current;
      const next = all[now + 1];
      if (next) setUrl({ at: String(next.sequence_number) }, true);
      else setUrl({ at: null, play: null }, true);
    }, STEP_MS);
    return () => clearInterval(timer);
  }, [playing, setUrl]);

  if (steps.length === 0) return null;
  const step = steps[here];
  const momentText =
    at === null || !step
      ? "now"
      : `step ${here + 1} of ${steps.length}, #${step.sequence_number} by ${step.agent_id ?? "unknown"}`;
  return (
    <section className={classes.scrub} aria-label="State scrub">
      <Button
        size="compact-xs"
        variant="default"
        onClick={() => {
          if (playing) setUrl({ play: null }, true);
          else to(at === null || here >= steps.length - 1 ? 0 : here, { play: "time" });
        }}
      >
        {playing ? "‖ Pause" : "▶ Play forward"}
      </Button>
      <input
        type="range"
        className={classes.slider}
        aria-label="Moment of the session"
        aria-valuetext={momentText}
        min={0}
        max={steps.length - 1}
        value={here}
        // The arrow keys belong to the slider here, not to the graph.
        onKeyDown={(event) => event.key.startsWith("Arrow") && event.stopPropagation()}
        onChange={(event) => {
          const place = Number(event.currentTarget.value);
          if (place >= steps.length - 1) setUrl({ at: null, play: null }, true);
          else to(place, { play: null });
        }}
      />
      <span className={classes.moment} title={step ? exact(step.at) : undefined}>
        {momentText}
      </span>
      {at !== null && (
        <Button size="compact-xs" variant="light" onClick={() => setUrl({ at: null, play: null }, true)}>
          Back to now
        </Button>
      )}
    </section>
  );
}
