/** Who speaks and listens, by which way out and in: what sessions, gates and decisions ask of an agent. */

import type { Ear } from "./ear.ts";
import type { Log } from "./log.ts";
import type { Orders } from "./orders.ts";
import type { Outbox } from "./outbox.ts";
import type { Identity } from "./protocol.ts";
import type { Line } from "./session.ts";
import type { Step } from "./step.ts";

export type OnAway = "allow" | "deny";

export interface Speaker {
  readonly agent_id: string;
  readonly cluster: string;
  readonly identity: Identity;
  readonly outbox: Outbox;
  readonly orders: Orders;
  readonly ear: Ear;
  readonly log: Log;
  readonly ambient: Ambient;
  /** Whether a tool may be run while the gateway is away. */
  readonly on_away: OnAway;
  /** With the first step the agent begins to listen, unless it was made with `control: false`. */
  hear(): void;
  /** Who asks a person must hear the answer, `control: false` or not. */
  listenNow(): void;
  raw(body: string | Uint8Array | object): Step;
}

/** The session the running code belongs to, where a platform can know it. */
export interface Ambient {
  current(): Line | undefined;
  run<T>(line: Line, act: () => T): T;
}
