/**
 * The way in: what keeps an agent's channel open and brings what comes to its `Orders`.
 *
 * Law: listening never disturbs the agent, nor keeps its process alive. The channel is opened again whenever it
 * breaks, later each time; when a WebSocket cannot be had, the inbox is asked by long poll. What was taken is
 * acknowledged; what was not is left to come again.
 */

import { converse, type Loosen } from "./channel.ts";
import { asked, type Door, type Unsent, unsent } from "./client.ts";
import { backoffS, type Delivery, systemJitter } from "./delivery.ts";
import { timestamp } from "./ids.ts";
import type { Log } from "./log.ts";
import type { Orders } from "./orders.ts";
import type { AckIds, Pulse } from "./protocol.ts";
import { objectOf, Received, textOf } from "./received.ts";
import { Bell, quietly } from "./waiting.ts";

const POLL_S = 25;
const SOCKET_AGAIN_MS = 60_000; // how long to poll before the WebSocket is tried again
const PULSE_TIMEOUT_S = 5;
const ACKS_AT_ONCE = 500;
const CLOSE_MS = 2000;
const STEADY_MS = 5000; // a channel that held so long was a good one
const NO_NEWS_MS = 1000;
const POLL_ITEMS = 1000;

/** No answer came; carries why, as the sender's `Unsent` does. The agent never sees it. */
export class NoChannel extends Error {
  readonly why: Unsent;

  constructor(why: Unsent) {
    super(why.reason);
    this.why = why;
  }
}

export class Ear {
  #agentId: string;
  #path: string;
  #door: Door;
  #delivery: Delivery;
  #orders: Orders;
  #pulse: () => Pulse;
  #heartbeatS: number | null;
  #log: Log;
  #loosen: Loosen;
  #running: Promise<void> | null = null;
  #work = new Bell(); // acknowledgements to send, or the end
  #stop = new AbortController();
  #beat: ReturnType<typeof setTimeout> | undefined;
  #complaint = "";

  constructor(
    agentId: string,
    door: Door,
    delivery: Delivery,
    orders: Orders,
    {
      pulse,
      heartbeatS,
      log,
      loosen,
    }: { pulse: () => Pulse; heartbeatS: number | null; log: Log; loosen: Loosen },
  ) {
    this.#agentId = agentId;
    this.#path = `/v1/agents/${encodeURIComponent(agentId)}`;
    this.#door = door;
    this.#delivery = delivery;
    this.#orders = orders;
    this.#pulse = pulse;
    this.#heartbeatS = heartbeatS;
    this.#log = log;
    this.#loosen = loosen;
    orders.on_acks = () => this.#work.ring();
  }

  get isOpen(): boolean {
    return this.#running !== null;
  }

  /** Begins to listen; returns at once. */
  open(): void {
    if (this.#running !== null || this.#orders.closed) return;
    this.#running = this.#keepListening();
    this.#beatLater();
  }

  /** POST to the gateway: status and body of its answer; `NoChannel` if there is none. */
  async request(path: string, body: unknown, timeoutS: number): Promise<{ status: number; body: string }> {
    if (this.#orders.closed) throw new NoChannel({ reason: "the agent was closed" });
    return this.#ask("POST", path, body, timeoutS);
  }

  /** Wakes whoever waits and ends: acknowledges what was taken, says goodbye. */
  async close(): Promise<void> {
    this.#orders.close();
    clearTimeout(this.#beat);
    this.#work.ring();
    const late = new Promise<void>((resolve) => quietly(resolve, CLOSE_MS));
    this.#stop.abort();
    await Promise.race([this.#running, late]);
  }

  async #ask(
    method: string,
    path: string,
    body: unknown,
    timeoutS: number,
    ending?: AbortSignal,
  ): Promise<{ status: number; body: string }> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const heard = await asked(this.#door, method, path, text, timeoutS, undefined, ending);
    if ("reason" in heard) throw new NoChannel(heard);
    return heard;
  }

  async #keepListening(): Promise<void> {
    let failures = 0;
    while (!this.#orders.closed) {
      const began = performance.now();
      let why: Unsent = { reason: "the channel was closed" };
      try {
        await this.#listen();
      } catch (error) {
        if (error instanceof NoChannel) why = error.why;
        else {
          // The runner: say so, wait, go on.
          this.#log("error", `${this.#agentId}: listening failed and goes on (${error})`);
          why = { reason: String((error as Error | null)?.name ?? error) };
        }
      }
      if (this.#orders.closed) break;
      this.#orders.setConnected(false);
      failures = performance.now() - began > STEADY_MS ? 1 : failures + 1;
      this.#complain(why);
      await this.#sleep(backoffS(this.#delivery, failures, why, systemJitter) * 1000);
    }
  }

  /** Once for each reason; a gateway that is away is the sender's to complain about. */
  #complain(why: Unsent): void {
    if (why.reason === this.#complaint) return;
    this.#complaint = why.reason;
    this.#log(
      why.needs_a_person ? "warning" : "info",
      `${this.#agentId} hears nothing for now: ${why.reason}`,
    );
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#stop;
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const timer = quietly(wake, ms);
      signal.addEventListener("abort", wake);
    });
  }

  /** By WebSocket; where none can be had, by long poll. Returns when the connection ends. */
  async #listen(): Promise<void> {
    if (!(await this.#bySocket()) && !this.#orders.closed) await this.#poll();
  }

  /** True if the gateway greeted us before the socket ended. */
  #bySocket(): Promise<boolean> {
    return converse({
      url: `${this.#door.url.replace(/^http/, "ws")}${this.#path}/channel`,
      key: this.#door.key,
      opening_s: this.#delivery.timeout_s,
      ping_s: this.#delivery.ping_s,
      hear: (frame) => this.#hear(frame),
      acks: () => this.#orders.takeAcks(ACKS_AT_ONCE),
      work: this.#work,
      stop: this.#stop.signal,
      loosen: this.#loosen,
    });
  }

  /** One frame of the channel; true for the gateway's greeting. */
  #hear(frame: unknown): boolean {
    let told: Record<string, unknown>;
    try {
      told = objectOf(JSON.parse(String(frame)));
    } catch {
      told = {};
    }
    if (told.type === "hello") {
      const paused = Array.isArray(told.paused) ? told.paused.map(String) : [];
      const text = textOf(objectOf(told.instructions).text);
      const everywhere = told.paused_everywhere === true;
      this.#orders.hello(textOf(told.entity_id), paused, told.stopped === true, text, everywhere);
      this.#complaint = "";
      return true;
    }
    if (told.type === "delivery") {
      const item = Received.read(told);
      if (item !== null) {
        this.#orders.take(item);
        return false;
      }
    }
    if (told.type === undefined || told.type === "delivery")
      this.#log("warning", `${this.#agentId}: what came by the channel could not be read`);
    return false;
  }

  /** The inbox by long poll, for a while. The same items, the same acknowledgements. */
  async #poll(): Promise<void> {
    const end = performance.now() + SOCKET_AGAIN_MS;
    const unwatch = this.#work.watch(() => void this.#acknowledgeByPost());
    try {
      while (performance.now() < end && !this.#orders.closed) {
        const waitS = this.#orders.connected ? POLL_S : 0; // first look whether there is an inbox
        const path = `${this.#path}/inbox?wait=${waitS}&limit=${POLL_ITEMS}`;
        const limit = waitS + this.#delivery.timeout_s;
        const { status, body } = await this.#ask("GET", path, undefined, limit, this.#stop.signal);
        if (status !== 200) throw new NoChannel(noInbox(status));
        const items = readItems(body);
        if (!this.#orders.connected) {
          await this.#learnEntityId();
          this.#orders.setConnected(true);
          this.#complaint = "";
        }
        const news = items.filter((item) => this.#orders.take(item));
        if (items.length && !news.length) await this.#sleep(NO_NEWS_MS); // they wait for the agent to fetch them
      }
    } finally {
      unwatch();
      await this.#acknowledgeByPost();
    }
  }

  #posting = false;

  async #acknowledgeByPost(): Promise<void> {
    if (this.#posting) return;
    this.#posting = true;
    try {
      for (
        let ids = this.#orders.takeAcks(ACKS_AT_ONCE);
        ids.length;
        ids = this.#orders.takeAcks(ACKS_AT_ONCE)
      ) {
        const body: AckIds = { ids };
        const told = await this.#ask("POST", `${this.#path}/inbox/ack`, body, this.#delivery.timeout_s).catch(
          () => null,
        );
        if (told === null || told.status >= 300) {
          this.#orders.giveBackAcks(ids); // sent a little later, perhaps by the next connection
          if (!this.#orders.closed) quietly(() => this.#work.ring(), NO_NEWS_MS);
          return;
        }
      }
    } finally {
      this.#posting = false;
    }
  }

  /** Where no greeting says it, the registry does. */
  async #learnEntityId(): Promise<void> {
    if (this.#orders.entity_id !== null) return;
    const { status, body } = await this.#ask(
      "POST",
      "/v1/agents",
      { agent_id: this.#agentId },
      this.#delivery.timeout_s,
    );
    if (status < 300) this.#orders.setEntityId(textOf(objectOf(parsed(body)).entity_id));
  }

  // The pulse.

  /** Says how the agent is, now. */
  pulseNow(): void {
    clearTimeout(this.#beat);
    void this.#sendPulse();
  }

  #beatLater(): void {
    clearTimeout(this.#beat);
    if (this.#heartbeatS === null || this.#orders.closed) return;
    this.#beat = quietly(() => {
      if (this.#orders.connected) void this.#sendPulse();
      else this.#beatLater();
    }, this.#heartbeatS * 1000);
  }

  async #sendPulse(): Promise<void> {
    try {
      const pulse: Pulse = { ...this.#pulse(), timestamp: timestamp() };
      const { status } = await this.#ask("POST", "/v1/heartbeat", pulse, PULSE_TIMEOUT_S, this.#stop.signal);
      if (status >= 400) this.#log("debug", `${this.#agentId}: its heartbeat was answered ${status}`);
    } catch (error) {
      this.#log("debug", `${this.#agentId}: no heartbeat (${(error as Error).message})`);
    } finally {
      this.#beatLater();
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function readItems(body: string): Received[] {
  const { items } = objectOf(parsed(body));
  if (!Array.isArray(items)) throw new NoChannel({ reason: "what answers there is not a gateway" });
  return items.map(Received.read).filter((item) => item !== null);
}

function noInbox(status: number): Unsent {
  return status === 401 || status === 403
    ? unsent(status, null)
    : { reason: `the inbox was answered ${status}` };
}
