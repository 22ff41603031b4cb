// The causal graph of a session: cards by cause from top to bottom, growing with the session. The view never
// moves by itself except to follow the newest step, which can be switched off.
import { Background, type Node, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { Button } from "@mantine/core";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useStill } from "~/motion";
import { plural } from "~/plural";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Loading } from "~/widgets/Panel";
import { placeAt } from "../scratch/intents";
import type { Highlight } from "../step/highlight";
import { drawn as drawnOf, MAX_CARDS } from "./collapse";
import classes from "./Dag.module.css";
import { DagBar } from "./DagBar";
import { edgesOf, Flow, type GraphViewState } from "./flow";
import { firstGate, firstLoop, found as foundIn, type Graph, type Step } from "./graph";
import { HIGH, pointOf, WIDE } from "./layout";
import { MiniMap } from "./MiniMap";
import { type Way, walk } from "./navigation";
import { DiamondNode, RunNode } from "./OtherNodes";
import { LOOKS, type Look, painting, type Strength } from "./paint";
import { Far, type StepData, StepNode } from "./StepNode";
import { useLayout } from "./useLayout";

const TYPES = { step: StepNode, run: RunNode, diamond: DiamondNode };
const WORDS = {
  "node.a11yDescription.default": "Enter opens the step. Arrow keys move to parents, children and siblings.",
  "node.a11yDescription.keyboardDisabled": "Enter opens the step.",
};
const ALL_SEEN = 30;
const FAR = 0.42;
const NONE: ReadonlyMap<number, string> = new Map();

export interface DagProps {
  sessionId: string;
  graph: Graph;
  ready: boolean;
  selected: Step | undefined;
  at: number | null;
  lit: Highlight | null;
  unlight: () => void;
  goTo: (sequence_number: number) => void;
  infected: ReadonlyMap<number, Strength>;
  select: (step: Step, how?: { replace?: boolean; open?: boolean }) => void;
}

export function Dag(props: DagProps) {
  if (!props.ready) return <Loading rows={5} />;
  if (props.graph.steps.length === 0)
    return <Empty>No steps yet. The first one appears here as it arrives.</Empty>;
  return (
    <ReactFlowProvider>
      <Picture {...props} />
    </ReactFlowProvider>
  );
}

function Picture({ sessionId, graph, selected, at, lit, unlight, goTo, infected, select }: DagProps) {
  const [url, setUrl] = useUrl();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const look: Look = LOOKS.find((one) => one === url.colour) ?? "state";
  const follows = url.follow ? url.follow === "1" : !selected && at === null;

  // Only in a long session does the selected step decide what is drawn.
  const near = graph.steps.length > MAX_CARDS ? selected?.id : undefined;
  const drawn = useMemo(() => drawnOf(graph, { selected: near, opened }), [graph, near, opened]);
  // A run expanded by selecting a step in it stays expanded: folding it would change the layout.
  const shown = useRef(drawn);
  useEffect(() => {
    const run = near === undefined ? undefined : shown.current.place.get(near);
    if (run?.startsWith("run:")) setOpened((before) => new Set([...before, run]));
  }, [near]);
  useEffect(() => {
    shown.current = drawn;
  }, [drawn]);
  const { spots, busy, tookMs, tidy } = useLayout(sessionId, drawn);
  const how = useMemo(() => painting(graph, look, infected), [graph, look, infected]);
  const hits = useMemo(() => foundIn(graph, url.find), [graph, url.find]);
  const sight: GraphViewState = useMemo(
    () => ({
      selected: selected?.id,
      at,
      found: url.find ? new Set(hits.map((step) => step.id)) : null,
      lit: lit?.steps ?? NONE,
    }),
    [selected?.id, at, hits, url.find, lit],
  );
  const flow = useRef(new Flow());
  const nodes = useMemo(
    () => flow.current.nodes(drawn, graph, spots, how, sight),
    [drawn, graph, spots, how, sight],
  );
  const edges = useMemo(
    () => edgesOf(drawn, spots, (id) => at !== null && (graph.byId.get(id)?.sequence_number ?? 0) > at),
    [drawn, spots, at, graph],
  );

  const far = useStore((store) => store.transform[2] < FAR);
  const camera = useCamera({ graph, drawn, spots, selected, at, follows, busy });
  const go = (step: Step | undefined) => step && select(step, { replace: true });
  const way = (where: Way) => () => go(walk(graph, selected?.id, where));
  const hit = (by: 1 | -1) => {
    const here = hits.findIndex((step) => step.id === selected?.id);
    go(hits[(here + by + hits.length) % hits.length]);
  };
  useKeys(
    {
      ArrowUp: { run: way("up"), says: "go to the parent" },
      ArrowDown: { run: way("down"), says: "go to the first child" },
      ArrowLeft: { run: way("left"), says: "go to the previous sibling" },
      ArrowRight: { run: way("right"), says: "go to the next sibling" },
      "[": { run: way("older"), says: "older step" },
      "]": { run: way("newer"), says: "newer step" },
      Enter: {
        run: () => selected && select(selected, { replace: true, open: true }),
        says: "read the step",
      },
      g: { run: () => go(firstGate(graph)), says: "first gate" },
      l: { run: () => go(firstLoop(graph)), says: "first loop" },
      f: { run: () => setUrl({ follow: follows ? "0" : "1" }, true), says: "follow the newest step" },
      t: { run: tidy, says: "re-layout the graph" },
      "0": { run: camera.fit, says: "whole graph" },
      n: { run: () => hits.length > 0 && hit(1), says: "next match" },
    },
    "Session graph",
  );

  const press = useCallback(
    (node: Node) => {
      if (node.type === "run") setOpened((before) => new Set([...before, node.id]));
      else if (node.type === "diamond") {
        const step = graph.byId.get(node.id.replace("commands:", ""));
        if (step) select(step);
      } else select((node.data as StepData).step);
    },
    [graph, select],
  );

  return (
    <div className={classes.dag}>
      <DagBar
        how={how}
        graph={graph}
        hits={hits.length}
        nextHit={() => hit(1)}
        follows={follows}
        follow={(on) => setUrl({ follow: on ? "1" : "0" }, true)}
        fit={camera.fit}
        tidy={tidy}
        infected={infected.size}
      />
      {(drawn.note || graph.truncated) && (
        <p className={classes.said} role="status">
          {drawn.note}
          {graph.truncated && " The oldest steps exceed the gateway's limit for one graph."}
        </p>
      )}
      {lit && (
        <p className={classes.said} role="status">
          Highlighting: {lit.words} of{" "}
          <Button size="compact-xs" variant="subtle" onClick={() => goTo(lit.origin)}>
            #{lit.origin}
          </Button>
          , {plural(lit.steps.size, "step")}
          <Button size="compact-xs" variant="subtle" onClick={unlight}>
            clear
          </Button>
        </p>
      )}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: Enter and Space of a focused card, which is a button */}
      <div
        className={classes.canvas}
        data-testid="session-graph"
        data-laid-ms={tookMs === null ? undefined : Math.round(tookMs)}
        data-cards={nodes.length}
        onKeyDown={(event) => {
          const card = (event.target as HTMLElement).closest<HTMLElement>(".react-flow__node");
          if (!card || (event.key !== "Enter" && event.key !== " ")) return;
          const node = nodes.find((one) => one.id === card.dataset.id);
          if (!node) return;
          event.preventDefault();
          press(node);
        }}
      >
        {nodes.length === 0 ? (
          <p className={classes.said} role="status">
            Laying out {graph.steps.length.toLocaleString("en")} steps…
          </p>
        ) : (
          <Far value={far}>
            <ReactFlow
              nodes={nodes}
              edges={edges}
              nodeTypes={TYPES}
              onNodeClick={(_, node) => press(node)}
              onMoveStart={(event) => {
                if (event && follows) setUrl({ follow: "0" }, true);
              }}
              onInit={camera.begin}
              onlyRenderVisibleElements
              nodesDraggable={false}
              nodesConnectable={false}
              edgesFocusable={false}
              elementsSelectable
              disableKeyboardA11y
              autoPanOnNodeFocus={false}
              deleteKeyCode={null}
              selectionKeyCode={null}
              minZoom={0.05}
              maxZoom={1.6}
              ariaLabelConfig={WORDS}
              attributionPosition="bottom-left"
            >
              <Background gap={24} size={1} color="var(--hairline)" />
            </ReactFlow>
          </Far>
        )}
        {nodes.length > 0 && <MiniMap nodes={nodes} />}
        {busy && nodes.length > 0 && (
          <p className={classes.busy} role="status">
            laying out…
          </p>
        )}
      </div>
    </div>
  );
}

interface Aim {
  graph: Graph;
  drawn: ReturnType<typeof drawnOf>;
  spots: ReadonlyMap<string, { row: number; x: number }>;
  selected: Step | undefined;
  at: number | null;
  follows: boolean;
  busy: boolean;
}

/** Camera: a newly selected step is brought into view, the newest is followed, nothing else moves. */
function useCamera({ graph, drawn, spots, selected, at, follows, busy }: Aim) {
  const flow = useReactFlow();
  const still = useStill();
  const duration = still ? 0 : 160;
  const begun = useRef(false);
  const spotOf = (id: string | undefined) => (id ? spots.get(drawn.place.get(id) ?? "") : undefined);

  /** The newest step is shown low in the view, with its causes above. */
  const look = (id: string | undefined, zoom?: number, force = true, low = false) => {
    const spot = spotOf(id);
    if (!spot) return;
    const { x, y } = pointOf(spot);
    if (!force) {
      const a = flow.flowToScreenPosition({ x, y });
      const b = flow.flowToScreenPosition({ x: x + WIDE, y: y + HIGH });
      const box = document.querySelector(".react-flow")?.getBoundingClientRect();
      if (box && a.x >= box.left && a.y >= box.top && b.x <= box.right && b.y <= box.bottom) return;
    }
    const near = zoom ?? Math.max(flow.getZoom(), 0.7);
    const tall = document.querySelector(".react-flow")?.clientHeight ?? 0;
    const up = low ? Math.max(0, tall / near / 2 - HIGH) : 0;
    void flow.setCenter(x + WIDE / 2, y + HIGH / 2 - up, { zoom: near, duration });
  };
  const fit = () => void flow.fitView({ padding: 0.08, maxZoom: 1, duration });
  const head = graph.steps.at(-1)?.id;

  const begin = () => {
    begun.current = true;
    if (selected) look(selected.id, 0.9);
    else if (drawn.items.length <= ALL_SEEN) void flow.fitView({ padding: 0.08, maxZoom: 1, minZoom: 0.5 });
    else look(head, 0.8, true, true);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: only another selection or a new picture moves it
  useEffect(() => {
    if (begun.current && selected && !busy) look(selected.id, undefined, false);
  }, [selected?.id, busy]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new head moves it
  useEffect(() => {
    if (begun.current && follows) look(head, undefined, false, true);
  }, [head, follows]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only another moment moves it
  useEffect(() => {
    if (begun.current && at !== null) look(graph.steps[placeAt(graph.steps, at)]?.id, undefined, false);
  }, [at]);

  return { begin, fit };
}
