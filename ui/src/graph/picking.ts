// From a screen point to the object under it: a badge, a node, an edge (with a generous width), a group, a
// hull; else the ground.
import { Agent, type AgentGroup } from "./bodies";
import type { Link } from "./edges";
import { BodyIndex, LinkIndex } from "./hit";
import { within } from "./hulls";
import { NEEDS_A_LOOK } from "./palette";
import type { Scene } from "./scene";
import type { Hit } from "./types";
import { type Size, toWorld, type View } from "./zoom";

const EDGE_PX = 7;
const NODE_PX = 3;
const TOUCH_PX = 9;
const BADGE_FROM_PX = 8.5;

export class Picking {
  private bodies: BodyIndex<Agent | AgentGroup> | null = null;
  private links: LinkIndex | null = null;

  /** Something moved, was added or removed. */
  forget(): void {
    this.bodies = null;
    this.links = null;
  }

  at(scene: Scene, view: View, size: Size, x: number, y: number, touch: boolean): Hit | null {
    const { x: wx, y: wy } = toWorld(view, size, x, y);
    const more = touch ? TOUCH_PX : 0;
    this.bodies ??= new BodyIndex([...scene.bodies()].filter((one) => !one.hidden && !one.dim));
    const body = this.bodies.at(wx, wy, (NODE_PX + more) / view.k);
    if (body instanceof Agent)
      return { kind: onBadge(body, view, wx, wy) ? "alarm" : "node", id: body.id, x, y };
    if (body && scene.level === "group") return { kind: "group", id: body.id, x, y };
    if (scene.level === "cluster") {
      const hull = hullAt(scene, wx, wy);
      if (hull) return { kind: "group", id: hull.id, x, y };
    }
    this.links ??= new LinkIndex(scene.links);
    const link = this.links.at(wx, wy, (EDGE_PX + more) / view.k);
    return link ? { ...linkHit(link), x, y } : null;
  }

  /** For a double click on a hull: the group there if its hull is already in focus, else the hull. */
  bunchAt(scene: Scene, view: View, size: Size, x: number, y: number, inHull: boolean): AgentGroup | null {
    const { x: wx, y: wy } = toWorld(view, size, x, y);
    if (inHull || scene.level === "group") {
      for (const group of scene.groups.values()) {
        if (!group.hidden && !group.dim && Math.hypot(group.x - wx, group.y - wy) <= group.r) return group;
      }
    }
    return hullAt(scene, wx, wy);
  }
}

function hullAt(scene: Scene, x: number, y: number): AgentGroup | null {
  for (const hull of scene.hulls.values()) {
    if (!hull.hidden && within(hull.outline, x - hull.x, y - hull.y)) return hull;
  }
  return null;
}

function onBadge(agent: Agent, view: View, x: number, y: number): boolean {
  const r = agent.r * view.k;
  if (r < BADGE_FROM_PX || !agent.alarm || !NEEDS_A_LOOK.has(agent.state)) return false;
  return (
    Math.hypot(x - agent.x - agent.r * 0.74, y - agent.y + agent.r * 0.74) * view.k <= Math.max(6, r * 0.5)
  );
}

export function linkHit(link: Link): Omit<Hit, "x" | "y"> {
  const first = link.records[0];
  const single = link.records.length === 1 && first !== undefined;
  return {
    kind: "edge",
    id: single ? first.id : link.id,
    edges: link.records.map((one) => one.id),
    from: single ? first.from : link.from.id,
    to: single ? (first.to ?? first.address ?? "") : (link.to?.id ?? ""),
  };
}
