// The topology engine's public exports: views import from here only.
export type { Callout } from "./callouts";
export { alarmText } from "./callouts";
export type { TopologyOptions } from "./engine";
export type { MapEvents } from "./events";
export { type Fault, FIELDS, matches, type Parsed, parseFind, type Term } from "./find";
export { wholeOf } from "./model";
export { DARK, glyph, NEEDS_A_LOOK, readTheme, type Sign, STATES, type Theme, WORST } from "./palette";
export type { Stats } from "./stats";
export { type Counts, type FindResult, Topology } from "./topology";
export type {
  Alarm,
  EdgeRecord,
  EdgeStatus,
  FleetPicture,
  Focus,
  ForkRecord,
  Grouping,
  GroupRecord,
  Hit,
  Layer,
  Level,
  MapObject as Thing,
  NodeRecord,
  NodeState,
  Region,
} from "./types";
export type { Insets } from "./zoom";
