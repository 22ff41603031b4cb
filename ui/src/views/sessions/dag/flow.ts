// Converts a drawn graph to @xyflow/react nodes with known size and handles (nothing is measured, so only
// what is in view is rendered) and edges by kind. Unchanged objects are reused, or every delta would render
// every card. Pure except for the reuse.
import { type Edge, MarkerType, type Node, Position } from "@xyflow/react";
import type { Drawn, Item } from "./collapse";
import type { Graph, Link } from "./graph";
import { type Spots as CardPositions, HIGH, pointOf, WIDE } from "./layout";
import type { DiamondData, RunData } from "./OtherNodes";
import { type Painting, paintOf } from "./paint";
import type { StepData } from "./StepNode";

export interface GraphViewState {
  selected: string | undefined;
  /** Steps with a higher number are greyed: they had not happened yet. */
  at: number | null;
  found: ReadonlySet<string> | null;
  lit: ReadonlyMap<number, string>;
}

const HANDLES = [
  { id: null, type: "target" as const, position: Position.Top, x: WIDE / 2, y: 0, width: 1, height: 1 },
  { id: null, type: "source" as const, position: Position.Bottom, x: WIDE / 2, y: HIGH, width: 1, height: 1 },
];
const SIZE = { width: WIDE, height: HIGH, measured: { width: WIDE, height: HIGH } };
const DIAMOND = { width: 120, height: 24, measured: { width: 120, height: 24 } };

export class Flow {
  private kept = new Map<string, { signature: string; was: unknown; node: Node }>();

  nodes(drawn: Drawn, graph: Graph, spots: CardPositions, how: Painting, sight: GraphViewState): Node[] {
    const next = new Map<string, { signature: string; was: unknown; node: Node }>();
    const nodes: Node[] = [];
    const put = (id: string, signature: string, was: unknown, make: () => Node) => {
      const before = this.kept.get(id);
      const entry =
        before && before.signature === signature && before.was === was
          ? before
          : { signature, was, node: make() };
      next.set(id, entry);
      nodes.push(entry.node);
    };
    for (const item of drawn.items) {
      const spot = spots.get(item.id);
      if (!spot) continue;
      const point = pointOf(spot);
      if (item.run) {
        put(item.id, `${spot.x} ${spot.row} ${item.run.steps.length}`, item.run.steps.at(-1), () =>
          runNode(item, point),
        );
        continue;
      }
      const step = item.step;
      const data: StepData = {
        step,
        paint: paintOf(how, step),
        branch: graph.branch.get(step.id) ?? 0,
        later: sight.at !== null && step.sequence_number > sight.at,
        found: sight.found === null ? null : sight.found.has(step.id),
        lit: sight.lit.get(step.sequence_number) ?? null,
        look: how.look,
      };
      const selected = sight.selected === step.id;
      if (data.later && how.look === "infection") data.paint = { tone: "plain", mark: "", word: "" };
      const { tone, word, level } = data.paint;
      const branch = how.look === "cost" ? data.branch : 0;
      const signature = `${spot.x} ${spot.row} ${tone} ${word} ${level} ${branch} ${data.later} ${data.found} ${data.lit} ${how.look} ${selected}`;
      put(item.id, signature, step, () => stepNode(data, point, selected));
      const commands = graph.commands.get(step.id);
      if (commands) {
        const last = commands.at(-1);
        put(
          `commands:${step.id}`,
          `${spot.x} ${spot.row} ${commands.length} ${last?.reversed_at}`,
          last,
          () => diamondNode(step.id, { commands }, point),
        );
      }
    }
    this.kept = next;
    return nodes;
  }
}

function stepNode(data: StepData, position: { x: number; y: number }, selected: boolean): Node {
  return {
    id: data.step.id,
    type: "step",
    position,
    data,
    selected,
    handles: HANDLES as Node["handles"],
    ...SIZE,
    ariaRole: "button",
    domAttributes: { "aria-pressed": selected, "aria-roledescription": undefined } as Node["domAttributes"],
  };
}

function runNode(item: Item & { run: object }, position: { x: number; y: number }): Node {
  const data: RunData = { run: item.run as RunData["run"] };
  return {
    id: item.id,
    type: "run",
    position,
    data,
    handles: HANDLES as Node["handles"],
    ...SIZE,
    ariaRole: "button",
    domAttributes: { "aria-roledescription": undefined } as Node["domAttributes"],
  };
}

/** At the lower left corner of its step, in the space between two rows. */
function diamondNode(step: string, data: DiamondData, at: { x: number; y: number }): Node {
  return {
    id: `commands:${step}`,
    type: "diamond",
    position: { x: at.x + 6, y: at.y + HIGH - 4 },
    data,
    ...DIAMOND,
    handles: [],
    zIndex: 5,
    focusable: false,
    selectable: false,
  };
}

export const KINDS: Record<Link["relation"], string> = {
  declared: "declared parent",
  inferred: "no declared parent: the agent's previous step",
  span: "parent span",
  late: "the parent arrived after the child",
  attached: "the parent never arrived",
  intervention: "a person's command",
  cycle: "refused: it would close a cycle",
};

export function edgesOf(drawn: Drawn, spots: CardPositions, later: (id: string) => boolean): Edge[] {
  const edges: Edge[] = [];
  for (const link of [...drawn.links, ...drawn.refused]) {
    if (!spots.has(link.from) || !spots.has(link.to)) continue;
    edges.push({
      id: `${link.relation === "cycle" ? "refused " : ""}${link.from} → ${link.to}`,
      source: link.from,
      target: link.to,
      className: later(link.to) ? `link ${link.relation} later` : `link ${link.relation}`,
      focusable: false,
      markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14, color: "var(--text-3)" },
      ...(link.relation === "cycle" ? { label: "refused cycle" } : {}),
    });
  }
  return edges;
}
