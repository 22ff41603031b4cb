// The geographic layer: hulls at their region's position on a world map. A chunk of its own, loaded when the
// layer is first opened. A cluster is never drawn at a wrong position without saying so: crowded hulls are
// pushed apart with a line back to their region; clusters without a region are in a labelled dock below the
// map.
import { forceCollide, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";
import { geoNaturalEarth1, geoPath } from "d3-geo";
import { feature } from "topojson-client";
import type { Topology as Atlas, GeometryCollection } from "topojson-specification";
import world from "world-atlas/land-110m.json";
import type { Circle, Point } from "./types";
import { AGENT_R, type Box, boxOf } from "./zoom";

const GAP = AGENT_R * 1.6;
const TICKS = 220;
/** Hulls cover at most this share of the map, so that the map stays readable. */
const COVER = 0.2;
const LEAST_WIDTH = AGENT_R * 100;
/** Antarctica has no regions; the map ends below Cape Horn. */
const SOUTH = -58;
const NORTH = 78;

export interface GeoPosition {
  lat: number;
  lon: number;
}

export interface Ground {
  land: string;
  box: Box;
  dock: Box | null;
  hulls: Map<string, Circle>;
  /** The true position of each placed hull. */
  anchors: Map<string, Point>;
}

interface Floating extends SimulationNodeDatum {
  key: string;
  r: number;
  home: Point;
}

export function widthFor(radii: Iterable<number>): number {
  let area = 0;
  for (const r of radii) area += Math.PI * (r + GAP) ** 2;
  // The map is about half as high as wide.
  return stepped(Math.max(LEAST_WIDTH, Math.sqrt(area / COVER / 0.46)));
}

/** In steps of a quarter: one more agent does not resize the world. */
const stepped = (width: number): number =>
  LEAST_WIDTH * 1.25 ** Math.ceil(Math.log(width / LEAST_WIDTH) / Math.log(1.25) - 1e-9);

function projectionOf(width: number) {
  return geoNaturalEarth1()
    .scale(width / 5.5)
    .translate([0, 0])
    .rotate([-11, 0]);
}

export function projected(width: number): (place: GeoPosition) => Point {
  const projection = projectionOf(width);
  return (place) => {
    const found = projection([place.lon, place.lat]);
    return { x: found?.[0] ?? 0, y: found?.[1] ?? 0 };
  };
}

/** Northern and southern limit of the map. */
function span(width: number): { y0: number; y1: number } {
  const at = projected(width);
  return { y0: at({ lat: NORTH, lon: 11 }).y, y1: at({ lat: SOUTH, lon: 11 }).y };
}

let drawn: { width: number; path: string } | null = null;

/** The land as an SVG path in world units: computed once for a width. */
export function landPath(width: number): string {
  if (drawn?.width === width) return drawn.path;
  const atlas = world as unknown as Atlas<{ land: GeometryCollection }>;
  const { y0, y1 } = span(width);
  const projection = projectionOf(width).clipExtent([
    [-width, y0 * 1.08],
    [width, y1],
  ]);
  const path = geoPath(projection).digits(1)(feature(atlas, atlas.objects.land)) ?? "";
  drawn = { width, path };
  return path;
}

export function ground(hulls: ReadonlyMap<string, number>, places: ReadonlyMap<string, GeoPosition>): Ground {
  const width = widthFor(hulls.values());
  const at = projected(width);
  const bodies: Floating[] = [];
  const unplaced: { key: string; r: number }[] = [];
  for (const [key, r] of [...hulls].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const place = places.get(key);
    if (!place) unplaced.push({ key, r });
    else {
      const home = at(place);
      bodies.push({ key, r: r + GAP / 2, home, x: home.x, y: home.y });
    }
  }
  forceSimulation(bodies)
    .force("home x", forceX<Floating>((one) => one.home.x).strength(0.12))
    .force("home y", forceY<Floating>((one) => one.home.y).strength(0.12))
    .force("apart", forceCollide<Floating>((one) => one.r).iterations(4))
    .stop()
    .tick(TICKS);
  const made = new Map<string, Circle>();
  const anchors = new Map<string, Point>();
  const half = width / 2;
  const world: Box = { x0: -half, x1: half, ...span(width) };
  for (const one of bodies) {
    made.set(one.key, { x: one.x ?? 0, y: one.y ?? 0, r: one.r - GAP / 2 });
    anchors.set(one.key, one.home);
  }
  const box = part(world, boxOf(made.values()));
  const dock = docked(unplaced, box, made);
  return { land: landPath(width), box: dock ? { ...box, y1: dock.y1 } : box, dock, hulls: made, anchors };
}

/** The part of the world with hulls in it, with enough margin to be recognised. */
function part(world: Box, used: Box | null): Box {
  if (!used) return world;
  const wide = (world.x1 - world.x0) * 0.09;
  const high = (world.y1 - world.y0) * 0.14;
  return {
    x0: Math.min(used.x0, Math.max(world.x0, used.x0 - wide)),
    x1: Math.max(used.x1, Math.min(world.x1, used.x1 + wide)),
    y0: Math.min(used.y0, Math.max(world.y0, used.y0 - high * 0.4)),
    y1: Math.max(used.y1, Math.min(world.y1, used.y1 + high)),
  };
}

/**
 * Hulls without a region, in rows below the map, with space above each for its name and below all for the
 * dock's.
 */
function docked(
  homeless: readonly { key: string; r: number }[],
  box: Box,
  made: Map<string, Circle>,
): Box | null {
  if (homeless.length === 0) return null;
  const head = AGENT_R * 6;
  const left = box.x0 + GAP * 2;
  let x = left;
  let y = box.y1 + GAP + head;
  let high = 0;
  let right = left + AGENT_R * 30;
  for (const { key, r } of homeless) {
    if (x + 2 * r > box.x1 - GAP && x > left) {
      x = left;
      y += high + head;
      high = 0;
    }
    made.set(key, { x: x + r, y: y + r, r });
    x += 2 * r + GAP * 2;
    right = Math.max(right, x);
    high = Math.max(high, 2 * r);
  }
  return { x0: left - GAP, x1: right, y0: box.y1 + GAP / 2, y1: y + high + AGENT_R * 3.5 };
}
