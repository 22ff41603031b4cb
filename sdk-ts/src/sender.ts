/** `Sender`: the parts of an agent that sessions, gates and decisions use. */

import type { Log } from "./log.ts";
import type { Orders } from "./orders.ts";
import type { Outbox } from "./outbox.ts";
import type { Identity } from "./protocol.ts";
import type { Receiver } from "./receiver.ts";
import type { SessionBranch } from "./session.ts";
import type { Step } from "./step.ts";

export type OnAway = "allow" | "deny";

export interface Sender {
  readonly agent_id: string;
  readonly cluster: string;
  readonly identity: Identity;
  readonly outbox: Outbox;
  readonly orders: Orders;
  readonly receiver: Receiver;
  readonly log: Log;
  readonly ambient: Ambient;
  /** Whether a tool may run while the gateway is unreachable. */
  readonly on_away: OnAway;
  /** Starts listening with the first step, unless the agent was created with `control: false`. */
  autoListen(): void;
  /** Starts listening even with `control: false`: a caller waits for an answer. */
  listenNow(): void;
  raw(body: string | Uint8Array | object): Step;
}

/** The current session, on platforms that can track it. */
export interface Ambient {
  current(): SessionBranch | undefined;
  run<T>(line: SessionBranch, action: () => T): T;
}
