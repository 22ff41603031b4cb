// The graph's toolbar: colouring and legend, find, follow, re-layout.
import { Button, SegmentedControl, TextInput, Tooltip } from "@mantine/core";
import { useUrl } from "~/useUrl";
import classes from "./Dag.module.css";
import { KINDS } from "./flow";
import type { Graph } from "./graph";
import { legendOf, type Painting } from "./paint";

const LOOK_WORDS = [
  { value: "state", label: "State" },
  { value: "cost", label: "Branch cost" },
  { value: "agent", label: "Agent" },
  { value: "infection", label: "Infection" },
];

export function DagBar({
  how,
  graph,
  hits,
  nextHit,
  follows,
  follow,
  fit,
  tidy,
  infected,
}: {
  how: Painting;
  graph: Graph;
  hits: number;
  nextHit: () => void;
  follows: boolean;
  follow: (on: boolean) => void;
  fit: () => void;
  tidy: () => void;
  infected: number;
}) {
  const [url, setUrl] = useUrl();
  const kinds = [...new Set([...graph.links, ...graph.refused].map((link) => link.relation))];
  return (
    <div className={classes.bar} role="toolbar" aria-label="Session graph">
      <SegmentedControl
        size="xs"
        aria-label="Colour by"
        data={LOOK_WORDS}
        value={how.look}
        onChange={(value) => setUrl({ colour: value === "state" ? null : value }, true)}
      />
      <TextInput
        size="xs"
        className={classes.find}
        aria-label="Find in graph"
        placeholder="Find in graph"
        value={url.find ?? ""}
        onChange={(event) => setUrl({ find: event.currentTarget.value }, true)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && hits > 0) nextHit();
        }}
        rightSectionWidth={56}
        rightSection={url.find ? <span className={classes.hits}>{hits} found</span> : undefined}
      />
      <Tooltip label="Keep the newest step in view (f)" openDelay={400}>
        <Button
          size="compact-xs"
          variant={follows ? "light" : "default"}
          aria-pressed={follows}
          onClick={() => follow(!follows)}
        >
          Follow newest
        </Button>
      </Tooltip>
      <Tooltip label="Show the whole graph (0)" openDelay={400}>
        <Button size="compact-xs" variant="default" onClick={fit}>
          Fit
        </Button>
      </Tooltip>
      <Tooltip label="Re-layout (t)" openDelay={400}>
        <Button size="compact-xs" variant="default" onClick={tidy}>
          Re-layout
        </Button>
      </Tooltip>
      <ul className={classes.legend} aria-label="Legend">
        {how.look === "infection" && infected === 0 ? (
          <li>select a fact in Memory to see its spread</li>
        ) : (
          legendOf(how).map((paint) => (
            <li key={paint.word} data-tone={paint.tone} data-level={paint.level}>
              <span aria-hidden className={classes.sign}>
                {paint.mark}
              </span>
              {paint.word}
            </li>
          ))
        )}
        {kinds
          .filter((kind) => kind !== "declared")
          .map((kind) => (
            <li key={kind} title={KINDS[kind]}>
              <span aria-hidden className={classes.stroke} data-kind={kind} />
              {kind === "cycle" ? "refused cycle" : kind}
            </li>
          ))}
      </ul>
    </div>
  );
}
