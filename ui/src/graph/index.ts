// The topology engine's door: views import from here only.
export type { Callout } from "./callouts";
export { said } from "./callouts";
export type { TopologyOptions } from "./engine";
export type { Told } from "./events";
export { type Fault, FIELDS, matches, type Parsed, parseFind, type Term } from "./find";
export { wholeOf } from "./model";
export { DARK, glyph, NEEDS_A_LOOK, readTheme, type Sign, STATES, type Theme, WORST } from "./palette";
export type { Stats } from "./stats";
export { type Counts, type Found, Topology } from "./topology";
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
  NodeRecord,
  NodeState,
  Region,
  Thing,
} from "./types";
export type { Insets } from "./zoom";
