// Fleet Command's view state in the URL: layer, level, focus, expression, minute, map or list, order. Pure:
// parses the URL and writes it back. Unknown values count as absent.
import type { Search } from "~/router";

export type Layer = "logical" | "geographic";
export type Level = "cluster" | "group" | "agent";
export type Grouping = "type" | "cluster";
/** "" cannot be written in a URL. */
const NONE = "(none)";
export const LEVELS: readonly Level[] = ["cluster", "group", "agent"];
export const LEVEL_WORDS: Record<Level, string> = { cluster: "clusters", group: "types", agent: "agents" };

export interface FleetViewState {
  layer: Layer;
  /** null: chosen by the zoom, clusters when zoomed out, agents when zoomed in. */
  level: Level | null;
  /** Hulls of the logical layer. */
  by: Grouping;
  /** The drill-down: a cluster, a type, or a type within a cluster; "" is those without one. */
  cluster: string | null;
  group: string | null;
  find: string;
  hide: string;
  /** The replayed minute, as RFC 3339 text; null is now. */
  at: string | null;
  list: boolean;
  order: Order;
}

export interface Order {
  by: string;
  down: boolean;
}

const NO_ORDER: Order = { by: "state", down: false };

export function lookingOf(search: Search): FleetViewState {
  return {
    layer: search.layer === "geographic" ? "geographic" : "logical",
    level: LEVELS.find((level) => level === search.level) ?? null,
    by: search.by === "cluster" ? "cluster" : "type",
    cluster: read(search.cluster),
    group: read(search.group),
    find: search.find ?? "",
    hide: search.hide ?? "",
    at: minuteOf(search.at),
    list: search.list === "1",
    order: orderOf(search.sort),
  };
}

/** `cost` ascends, `-cost` descends. */
export function orderOf(text: string | undefined): Order {
  if (!text) return NO_ORDER;
  return text.startsWith("-") ? { by: text.slice(1), down: true } : { by: text, down: false };
}

export function orderText(order: Order): string {
  return `${order.down ? "-" : ""}${order.by}`;
}

/** A click on a column: its default order first, then reversed. */
export function turned(order: Order, by: string, downFirst: boolean): Order {
  return order.by === by ? { by, down: !order.down } : { by, down: downFirst };
}

/** The start of the minute of a time, or null if it is not a time. */
export function minuteOf(text: string | undefined): string | null {
  if (!text) return null;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return null;
  return `${new Date(ms - (ms % 60_000)).toISOString().slice(0, 16)}:00Z`;
}

function read(text: string | undefined): string | null {
  return text ? (text === NONE ? "" : text) : null;
}

/** How a cluster or type is written, in the URL and on screen. */
export function written(name: string | null): string | null {
  return name === "" ? NONE : name;
}

export interface Focus {
  cluster?: string;
  group?: string;
}

export function focusOf({ cluster, group }: Pick<FleetViewState, "cluster" | "group">): Focus | null {
  if (cluster === null && group === null) return null;
  return { ...(cluster !== null && { cluster }), ...(group !== null && { group }) };
}

/** What the id of a hull or group on the map refers to: `cluster:X`, `type:X`, `group:CLUSTER/TYPE`. */
export function focusIn(id: string): Focus | null {
  const [, kind, name] = /^(cluster|type|group):(.*)$/s.exec(id) ?? [];
  if (kind === undefined || name === undefined) return null;
  if (kind === "cluster") return { cluster: name };
  if (kind === "type") return { group: name };
  const slash = name.lastIndexOf("/");
  return { cluster: name.slice(0, slash), group: name.slice(slash + 1) };
}

/** The URL members of a drill-down. */
export function focusUrl(focus: Focus | null): { cluster: string | null; group: string | null } {
  return { cluster: written(focus?.cluster ?? null), group: written(focus?.group ?? null) };
}

export interface Crumb {
  name: string;
  /** The URL this crumb leads to. */
  to: { cluster: string | null; group: string | null };
}

/** The breadcrumbs: the mesh, then a cluster, then a type. The last is the current one. */
export function crumbsOf({ cluster, group }: Pick<FleetViewState, "cluster" | "group">): Crumb[] {
  const crumbs: Crumb[] = [{ name: "Mesh", to: focusUrl(null) }];
  if (cluster !== null) crumbs.push({ name: written(cluster) ?? "", to: focusUrl({ cluster }) });
  if (group !== null) crumbs.push({ name: written(group) ?? "", to: focusUrl(focusOf({ cluster, group })) });
  return crumbs;
}
