// The part of a graph to draw. Up to a maximum number of steps all of it; above, straight runs of one agent
// become one card ("12 steps of writer-2"), and if that is not enough only the part around the selected step
// or the newest. Omissions are always shown. Pure.
import type { Graph, Link, Step } from "./graph";

export const MAX_CARDS = 2_500;
const SHORTEST_RUN = 3;

export interface Run {
  id: string;
  agent_id: string | null;
  steps: Step[];
}
export type Item = { id: string; step: Step; run?: undefined } | { id: string; run: Run; step?: undefined };

export interface Drawn {
  items: Item[];
  links: Link[];
  refused: Link[];
  /** The item that represents a step; absent if outside of the drawn part. */
  place: Map<string, string>;
  /** A note when not every step has a card of its own. */
  note: string | null;
}

interface Wish {
  most?: number;
  selected?: string;
  opened?: ReadonlySet<string>;
}

export function drawn(graph: Graph, { most = MAX_CARDS, selected, opened = new Set() }: Wish = {}): Drawn {
  if (graph.steps.length <= most) return of(graph, graph.steps.map(single), null);
  const items = runs(graph, selected, opened);
  const folded = items.filter((item) => item.run);
  if (items.length <= most) {
    return of(
      graph,
      items,
      `${graph.steps.length.toLocaleString("en")} steps: ${folded.length} straight runs of one agent are folded into one card; click one to expand it.`,
    );
  }
  const around = items.findIndex((item) => item.id === selected);
  const last = around < 0 ? items.length : Math.min(items.length, around + Math.ceil(most / 2));
  const part = items.slice(Math.max(0, last - most), Math.max(last, Math.min(most, items.length)));
  const steps = part.reduce((sum, item) => sum + (item.run?.steps.length ?? 1), 0);
  return of(
    graph,
    part,
    `${steps.toLocaleString("en")} of ${graph.steps.length.toLocaleString("en")} steps are drawn: ${around < 0 ? "the newest" : "those around the selected one"}. Use [ and ] for older and newer ones.`,
  );
}

const single = (step: Step): Item => ({ id: step.id, step });

/** Straight: one parent, one child, the same agent, nothing that needs attention. */
function isPlain(graph: Graph, step: Step): boolean {
  return (
    graph.children.get(step.id)?.length === 1 &&
    graph.parents.get(step.id)?.length === 1 &&
    !graph.commands.has(step.id) &&
    step.state === "forwarded" &&
    step.gate !== "open" &&
    !step.low_confidence &&
    step.flags.length === 0
  );
}

function runs(graph: Graph, selected: string | undefined, opened: ReadonlySet<string>): Item[] {
  const taken = new Set<string>();
  const items: Item[] = [];
  for (const step of graph.steps) {
    if (taken.has(step.id)) continue;
    const line = [step];
    if (isPlain(graph, step)) {
      for (let at = step; ; ) {
        const next = graph.byId.get(graph.children.get(at.id)?.[0] ?? "");
        if (!next || next.agent_id !== step.agent_id || taken.has(next.id) || !isPlain(graph, next)) break;
        line.push(next);
        at = next;
      }
    }
    const id = `run:${step.id}`;
    const stays = line.length >= SHORTEST_RUN && !opened.has(id) && !line.some((one) => one.id === selected);
    for (const one of line) taken.add(one.id);
    if (stays) items.push({ id, run: { id, agent_id: step.agent_id, steps: line } });
    else items.push(...line.map(single));
  }
  return items;
}

function of(graph: Graph, items: Item[], said: string | null): Drawn {
  const place = new Map<string, string>();
  for (const item of items) {
    if (item.run) for (const step of item.run.steps) place.set(step.id, item.id);
    else place.set(item.id, item.id);
  }
  return { items, links: moved(graph.links, place), refused: moved(graph.refused, place), place, note: said };
}

function moved(links: Link[], place: Map<string, string>): Link[] {
  const kept = new Map<string, Link>();
  for (const link of links) {
    const from = place.get(link.from);
    const to = place.get(link.to);
    if (from === undefined || to === undefined || from === to) continue;
    kept.set(`${from} → ${to}`, from === link.from && to === link.to ? link : { ...link, from, to });
  }
  return [...kept.values()];
}
