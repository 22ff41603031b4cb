/**
 * `Agent`: an agent's voice and ear.
 *
 *     import { Agent } from "hypervisor-observatory";
 *     const agent = new Agent("researcher-1");
 *     agent.step("Verify revenue", { tool_call: "serp_search", tool_input: { query: "NVDA 10-K" } });
 *     const ok = await agent.ask("Publish the report", { tool_call: "publish", tool_input: { to: "all" } });
 *     publish(ok.tool_input);
 *
 * Law: all steps, of whatever session, pass through `gate`: the one place where an agent is made to wait, and only by
 * a person's or a rule's order, never by its telemetry.
 */

import type { Loosen } from "./channel.ts";
import type { Door } from "./client.ts";
import { DELIVERY, type Delivery } from "./delivery.ts";
import { Ear } from "./ear.ts";
import { encoded } from "./encode.ts";
import type { Rejected } from "./errors.ts";
import { type Log, toConsole } from "./log.ts";
import { Orders } from "./orders.ts";
import { type Ending, Outbox } from "./outbox.ts";
import type { AgentItem, Identity, NewAgent, Pulse } from "./protocol.ts";
import type { Prompt, Received } from "./received.ts";
import { type Continued, type Line, openLine, Session, Words } from "./session.ts";
import type { Ambient, OnAway, Speaker } from "./speaker.ts";
import type { Spools } from "./spool.ts";
import { Step } from "./step.ts";
import { asking, Proof, type ProofTerms } from "./thoughts.ts";
import { type Patience, until } from "./waiting.ts";

const HEARTBEAT_S = 15;
const REGISTER_S = 10;

export interface AgentOptions {
  agent_type?: string;
  version?: string;
  cluster?: string;
  model?: string;
  provider?: string;
  /** The gateway's address and an agent key. In Node they may come from the environment or `agent.json`. */
  url?: string;
  key?: string;
  /** The folder that holds `agent.json` and the spool (Node). */
  data?: string;
  delivery?: Partial<Delivery>;
  on_reject?: (rejected: Rejected) => void;
  on_instruction?: (text: string) => void;
  /** Shares that agent's sender; then closing that one closes the sender. */
  shares?: BaseAgent;
  /** `false`: it listens only from when it asks something, and sends no heartbeats before. */
  control?: boolean;
  /** Seconds; `null`: none by itself. */
  heartbeat_s?: number | null;
  /** `"deny"`: while the gateway is away `permit` and `tool` throw `Denied`; otherwise steps are marked `gateway_away`. */
  on_away?: OnAway;
  log?: Log;
}

/** What Node and a browser do differently. */
export interface Platform {
  door(options: AgentOptions, agentId: string): Door;
  /** The same gateway with the agent's own key, if it has one: its inbox takes no other. */
  ownDoor(door: Door, options: AgentOptions, agentId: string): Door;
  cluster(): string | undefined;
  spools(options: AgentOptions): Spools | null;
  ending: Ending;
  ambient: Ambient;
  loosen: Loosen;
}

/** An agent that speaks to the gateway and obeys it. Make one at start and keep it. */
export abstract class BaseAgent extends Words implements Speaker {
  readonly agent_id: string;
  readonly cluster: string;
  readonly identity: Identity;
  readonly outbox: Outbox;
  readonly orders: Orders;
  readonly ear: Ear;
  readonly log: Log;
  readonly ambient: Ambient;
  readonly on_away: OnAway;
  readonly #home: Line;
  readonly #door: Door;
  readonly #delivery: Delivery;
  readonly #ownsOutbox: boolean;
  readonly #control: boolean;
  #state: Partial<Pulse> = {};

  protected constructor(agentId: string, options: AgentOptions, platform: Platform) {
    super();
    const { agent_type, version = "1.0.0", model, provider, shares } = options;
    this.agent_id = agentId;
    this.cluster = options.cluster ?? platform.cluster() ?? "local";
    this.identity = {
      agent_id: agentId,
      agent_type: agent_type ?? (agentId.replace(/[-_.]?\d+$/, "") || agentId),
      capability_version: version,
      ...(model === undefined ? {} : { model }),
      ...(provider === undefined ? {} : { provider }),
    };
    const log = options.log ?? toConsole;
    this.log = log;
    this.ambient = platform.ambient;
    this.on_away = options.on_away ?? "allow";
    this.#ownsOutbox = shares === undefined;
    this.#door = shares ? shares.#door : platform.door(options, agentId);
    this.#delivery = shares ? shares.#delivery : { ...DELIVERY, ...options.delivery };
    const { ending } = platform;
    const parts = {
      spools: shares ? null : platform.spools(options),
      log,
      ending,
      onReject: options.on_reject,
    };
    this.outbox = shares?.outbox ?? new Outbox(agentId, this.#door, this.#delivery, parts);
    this.orders = new Orders(agentId, log, options.on_instruction);
    this.#control = options.control ?? true;
    const { heartbeat_s = HEARTBEAT_S } = options;
    const hearing = { pulse: () => this.#pulse(), heartbeatS: heartbeat_s, log, loosen: platform.loosen };
    const door = shares ? platform.ownDoor(this.#door, options, agentId) : this.#door;
    this.ear = new Ear(agentId, door, this.#delivery, this.orders, hearing);
    this.outbox.ears.add(this.ear);
    this.#home = openLine();
  }

  /** Where a step said without a session belongs: to the one this code runs in, else to our own. */
  protected here(): [Line, Speaker] {
    return [this.ambient.current() ?? this.#home, this];
  }

  hear(): void {
    if (this.#control) this.ear.open();
  }

  listenNow(): void {
    this.ear.open();
  }

  /** A new session with a trace of its own; or with `continues`, another's line gone on with: that of a session, of a
   * handoff, or of a message received. */
  session({ session_id, continues }: { session_id?: string; continues?: Continued | null } = {}): Session {
    return new Session(this, openLine(continues, session_id));
  }

  /** The latest refusals (at most 1,000), newest last; of all its agents when an outbox is shared. */
  get rejections(): readonly Rejected[] {
    return [...this.outbox.rejections];
  }

  /** The latest instructions for agents of this type; null while there are none. */
  get instructions(): string | null {
    return this.orders.instructions;
  }

  /** What people have injected since this was last asked, oldest first. */
  prompts(): Prompt[] {
    this.hear();
    return this.orders.takePrompts();
  }

  /** A chat's messages with what was injected at their end, as `{role: "user", content: …}`. */
  context<M>(messages: readonly M[]): (M | { role: "user"; content: string })[] {
    return [
      ...messages,
      ...this.prompts().map((prompt) => ({ role: "user" as const, content: prompt.text })),
    ];
  }

  /** The messages that have come since, oldest first; waits up to `timeout_s` (default 0) for the first one. */
  async messages({ timeout_s = 0, signal }: Patience = {}): Promise<Received[]> {
    await this.#arrived({ timeout_s, signal });
    return this.orders.takeMessages();
  }

  /** Messages as they come: `for await (const message of agent.incoming()) …`. Each counts as read when the next is
   * asked for, so one that an agent dies over comes again. Ends after `timeout_s` without any. */
  async *incoming(patience: Patience = {}): AsyncGenerator<Received, void, void> {
    while (true) {
      await this.#arrived(patience);
      const item = this.orders.nextMessage();
      if (item === null) return;
      try {
        yield item;
      } finally {
        this.orders.finish(item);
      }
    }
  }

  async #arrived(patience: Patience): Promise<void> {
    this.listenNow();
    await until(this.orders.bell, () => this.orders.hasMessages || this.orders.closed, patience);
  }

  /** Begins to listen, as the first step would; true if the gateway greets us within `timeout_s` (default 0). */
  async listen({ timeout_s = 0, signal }: Patience = {}): Promise<boolean> {
    this.listenNow();
    await until(this.orders.bell, () => this.orders.connected || this.orders.closed, { timeout_s, signal });
    return this.orders.connected;
  }

  /** Tells the registry who this is: `capabilities`, `display_name`, `owner`, … as on the wire. Rejects with
   * `Rejected`, or `NotAnswered` while the gateway is away. */
  async register(fields: Partial<NewAgent> = {}, timeoutS = REGISTER_S): Promise<AgentItem> {
    const { agent_id, agent_type, model, provider } = this.identity;
    const body: NewAgent = { agent_id, agent_type, model, provider, cluster_id: this.cluster, ...fields };
    this.listenNow();
    const told = await asking<AgentItem>(this, "/v1/agents", body, "the registration", timeoutS);
    this.orders.setEntityId(told.entity_id);
    return told;
  }

  /** Says how the agent is, now and with each automatic pulse from here on; returns at once. `task` is a description,
   * or the wire's own object; `progress` is in per cent. */
  heartbeat(
    status?: string,
    {
      task,
      progress,
      usage,
    }: { task?: string | Record<string, unknown>; progress?: number; usage?: Record<string, number> } = {},
  ): void {
    const told: Record<string, unknown> = typeof task === "string" ? { description: task } : { ...task };
    if (progress !== undefined) told.progress_pct = progress;
    if (Object.keys(told).length)
      this.#state.current_task = { task_id: `tsk_${this.#home.session_id}`, ...told };
    if (status !== undefined) this.#state.status = status;
    if (usage !== undefined) this.#state.resource_usage = usage;
    this.listenNow();
    this.ear.pulseNow();
  }

  #pulse(): Pulse {
    return { type: "heartbeat", agent_id: this.agent_id, cluster_id: this.cluster, ...this.#state };
  }

  /** Queues one message as it is, unread: for envelopes, other people's logs, and for trying what the gateway
   * refuses. It must be one line. It never waits. */
  raw(body: string | Uint8Array | object): Step {
    const line =
      typeof body === "string"
        ? body
        : body instanceof Uint8Array
          ? new TextDecoder().decode(body)
          : encoded(body);
    if (!line.trim() || /[\n\r]/.test(line))
      throw new TypeError("a raw message is one line that is not blank");
    const step = new Step(this.outbox, null, null);
    this.outbox.put(line, step);
    return step;
  }

  /** Runs `act` in a proof-grade session and seals it: think in it, and `conclude`. A block that throws leaves the
   * session unsealed: nothing was proved. Of the session this runs in, else one of its own. */
  async proof(intent: string, act: (proof: Proof) => unknown, terms: ProofTerms = {}): Promise<Proof> {
    const session_id = terms.session_id ?? this.ambient.current()?.session_id;
    const proof = new Proof(this, intent, { ...terms, ...(session_id === undefined ? {} : { session_id }) });
    await proof.start();
    await act(proof);
    await proof.finish();
    return proof;
  }

  /** Waits until everything said so far is answered; false if `timeout_s` passed first. */
  flush(patience: Patience = {}): Promise<boolean> {
    return this.outbox.flush(patience);
  }

  /** Stops listening, sends what can be sent, spools the rest; true if nothing is left. */
  async close(timeoutS?: number): Promise<boolean> {
    if (this.#ownsOutbox) return this.outbox.close(timeoutS);
    await this.ear.close();
    this.outbox.ears.delete(this.ear);
    return this.outbox.flush({ timeout_s: timeoutS ?? this.#delivery.close_timeout_s });
  }
}
