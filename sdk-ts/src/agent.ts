/**
 * `BaseAgent`: sends an agent's steps to the gateway and receives its orders. `Agent` of `node.ts` and `browser.ts`.
 *
 *     import { Agent } from "hypervisor-observatory";
 *     const agent = new Agent("researcher-1");
 *     agent.step("Verify revenue", { tool_call: "serp_search", tool_input: { query: "NVDA 10-K" } });
 *     const ok = await agent.ask("Publish the report", { tool_call: "publish", tool_input: { to: "all" } });
 *     publish(ok.tool_input);
 *
 * Rule: every step of every session passes through `gate`, the only place where an agent waits, and only because a
 * person or a rule ordered it, never because of telemetry.
 */

import type { Loosen } from "./channel.ts";
import type { GatewayCredentials } from "./client.ts";
import { DELIVERY, type Delivery } from "./delivery.ts";
import { encoded } from "./encode.ts";
import type { Rejected } from "./errors.ts";
import { type Log, toConsole } from "./log.ts";
import { Orders } from "./orders.ts";
import { type Ending, Outbox } from "./outbox.ts";
import type { AgentItem, HeartbeatBody, Identity, NewAgent } from "./protocol.ts";
import type { Prompt, Received } from "./received.ts";
import { Receiver } from "./receiver.ts";
import type { Ambient, OnAway, Sender } from "./sender.ts";
import { type Continued, openLine, Session, type SessionBranch, StepMethods } from "./session.ts";
import type { Spools } from "./spool.ts";
import { Step } from "./step.ts";
import { Proof, type ProofTerms, requestDurably } from "./thoughts.ts";
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
  /** Shares that agent's outbox; closing that agent closes the outbox. */
  shares?: BaseAgent;
  /** `false`: the agent listens and sends heartbeats only after it first asks something. */
  control?: boolean;
  /** Seconds; `null`: no automatic heartbeats. */
  heartbeat_s?: number | null;
  /** `"deny"`: while the gateway is unreachable, `permit` and `tool` throw `Denied`; otherwise steps are marked `gateway_away`. */
  on_away?: OnAway;
  log?: Log;
}

/** What differs between Node and a browser. */
export interface Platform {
  credentials(options: AgentOptions, agentId: string): GatewayCredentials;
  /** The same gateway with the agent's own key, if it has one: its inbox accepts no other key. */
  ownCredentials(credentials: GatewayCredentials, options: AgentOptions, agentId: string): GatewayCredentials;
  cluster(): string | undefined;
  spools(options: AgentOptions): Spools | null;
  ending: Ending;
  ambient: Ambient;
  loosen: Loosen;
}

/** An agent connected to the gateway. Create one at start and keep it. */
export abstract class BaseAgent extends StepMethods implements Sender {
  readonly agent_id: string;
  readonly cluster: string;
  readonly identity: Identity;
  readonly outbox: Outbox;
  readonly orders: Orders;
  readonly receiver: Receiver;
  readonly log: Log;
  readonly ambient: Ambient;
  readonly on_away: OnAway;
  readonly #ownLine: SessionBranch;
  readonly #credentials: GatewayCredentials;
  readonly #delivery: Delivery;
  readonly #ownsOutbox: boolean;
  readonly #control: boolean;
  #state: Partial<HeartbeatBody> = {};

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
    this.#credentials = shares ? shares.#credentials : platform.credentials(options, agentId);
    this.#delivery = shares ? shares.#delivery : { ...DELIVERY, ...options.delivery };
    const { ending } = platform;
    const parts = {
      spools: shares ? null : platform.spools(options),
      log,
      ending,
      onReject: options.on_reject,
    };
    this.outbox = shares?.outbox ?? new Outbox(agentId, this.#credentials, this.#delivery, parts);
    this.orders = new Orders(agentId, log, options.on_instruction);
    this.#control = options.control ?? true;
    const { heartbeat_s = HEARTBEAT_S } = options;
    const receiving = { pulse: () => this.#pulse(), heartbeatS: heartbeat_s, log, loosen: platform.loosen };
    const credentials = shares
      ? platform.ownCredentials(this.#credentials, options, agentId)
      : this.#credentials;
    this.receiver = new Receiver(agentId, credentials, this.#delivery, this.orders, receiving);
    this.outbox.receivers.add(this.receiver);
    this.#ownLine = openLine();
  }

  /** The branch of a step recorded without a session: the current session's, else the agent's own. */
  protected here(): [SessionBranch, Sender] {
    return [this.ambient.current() ?? this.#ownLine, this];
  }

  autoListen(): void {
    if (this.#control) this.receiver.open();
  }

  listenNow(): void {
    this.receiver.open();
  }

  /** A new session with its own trace; with `continues`, the continuation of a session, a handoff or a received
   * message. */
  session({ session_id, continues }: { session_id?: string; continues?: Continued | null } = {}): Session {
    return new Session(this, openLine(continues, session_id));
  }

  /** The latest refusals (at most 1,000), newest last; of all agents that share the outbox. */
  get rejections(): readonly Rejected[] {
    return [...this.outbox.rejections];
  }

  /** The latest instructions for agents of this type; null if there are none. */
  get instructions(): string | null {
    return this.orders.instructions;
  }

  /** Prompts injected since the last call, oldest first. */
  prompts(): Prompt[] {
    this.autoListen();
    return this.orders.takePrompts();
  }

  /** A chat's messages followed by the injected prompts, as `{role: "user", content: …}`. */
  context<M>(messages: readonly M[]): (M | { role: "user"; content: string })[] {
    return [
      ...messages,
      ...this.prompts().map((prompt) => ({ role: "user" as const, content: prompt.text })),
    ];
  }

  /** New messages, oldest first; waits up to `timeout_s` (default 0) for the first one. */
  async messages({ timeout_s = 0, signal }: Patience = {}): Promise<Received[]> {
    await this.#arrived({ timeout_s, signal });
    return this.orders.takeMessages();
  }

  /** Iterates over messages: `for await (const message of agent.incoming()) …`. Each is acknowledged when the next is
   * requested, so a message is delivered again if the agent dies while handling it. Ends after `timeout_s` without one. */
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
    await until(this.orders.changes, () => this.orders.hasMessages || this.orders.closed, patience);
  }

  /** Starts listening, as the first step does; true if the gateway accepts the connection within `timeout_s` (default 0). */
  async listen({ timeout_s = 0, signal }: Patience = {}): Promise<boolean> {
    this.listenNow();
    await until(this.orders.changes, () => this.orders.connected || this.orders.closed, {
      timeout_s,
      signal,
    });
    return this.orders.connected;
  }

  /** Registers this agent: `capabilities`, `display_name`, `owner`, … as on the wire. Rejects with
   * `Rejected`, or `NotAnswered` while the gateway is unreachable. */
  async register(fields: Partial<NewAgent> = {}, timeoutS = REGISTER_S): Promise<AgentItem> {
    const { agent_id, agent_type, model, provider } = this.identity;
    const body: NewAgent = { agent_id, agent_type, model, provider, cluster_id: this.cluster, ...fields };
    this.listenNow();
    const item = await requestDurably<AgentItem>(this, "/v1/agents", body, "the registration", timeoutS);
    this.orders.setEntityId(item.entity_id);
    return item;
  }

  /** Reports the agent's status now and with each automatic heartbeat from here on; returns at once. `task` is a
   * description or the wire object; `progress` is in per cent. */
  heartbeat(
    status?: string,
    {
      task,
      progress,
      usage,
    }: { task?: string | Record<string, unknown>; progress?: number; usage?: Record<string, number> } = {},
  ): void {
    const current: Record<string, unknown> = typeof task === "string" ? { description: task } : { ...task };
    if (progress !== undefined) current.progress_pct = progress;
    if (Object.keys(current).length)
      this.#state.current_task = { task_id: `tsk_${this.#ownLine.session_id}`, ...current };
    if (status !== undefined) this.#state.status = status;
    if (usage !== undefined) this.#state.resource_usage = usage;
    this.listenNow();
    this.receiver.pulseNow();
  }

  #pulse(): HeartbeatBody {
    return { type: "heartbeat", agent_id: this.agent_id, cluster_id: this.cluster, ...this.#state };
  }

  /** Queues one message unchanged and unchecked: for envelopes, logs from other sources, and for testing what the
   * gateway refuses. It must be one line. Never waits. */
  raw(body: string | Uint8Array | object): Step {
    const line =
      typeof body === "string"
        ? body
        : body instanceof Uint8Array
          ? new TextDecoder().decode(body)
          : encoded(body);
    if (!line.trim() || /[\n\r]/.test(line)) throw new TypeError("a raw message must be one line, not blank");
    const step = new Step(this.outbox, null, null);
    this.outbox.put(line, step);
    return step;
  }

  /** Runs `action` in a proof-grade session and seals it: call `think` and `conclude` in it. An action that throws
   * leaves the session unsealed: nothing was proved. Uses the current session, else a new one. */
  async proof(intent: string, action: (proof: Proof) => unknown, terms: ProofTerms = {}): Promise<Proof> {
    const session_id = terms.session_id ?? this.ambient.current()?.session_id;
    const proof = new Proof(this, intent, { ...terms, ...(session_id === undefined ? {} : { session_id }) });
    await proof.start();
    await action(proof);
    await proof.finish();
    return proof;
  }

  /** Waits until everything sent so far is answered; false if `timeout_s` passed first. */
  flush(patience: Patience = {}): Promise<boolean> {
    return this.outbox.flush(patience);
  }

  /** Stops listening, sends what can be sent, spools the rest; true if nothing is left. */
  async close(timeoutS?: number): Promise<boolean> {
    if (this.#ownsOutbox) return this.outbox.close(timeoutS);
    await this.receiver.close();
    this.outbox.receivers.delete(this.receiver);
    return this.outbox.flush({ timeout_s: timeoutS ?? this.#delivery.close_timeout_s });
  }
}
