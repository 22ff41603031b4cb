/**
 * `Receiver`: keeps an agent's channel to the gateway open and passes what arrives to its `Orders`.
 *
 * Rule: listening never disturbs the agent and does not keep its process alive. A broken channel is reopened with
 * growing delays; without a WebSocket the inbox is read by long poll. Accepted items are acknowledged; the others are
 * delivered again.
 */

import { type Loosen, runSocket } from "./channel.ts";
import { type GatewayCredentials, request, type Unsent, unsent } from "./client.ts";
import { backoffS, type Delivery, systemJitter } from "./delivery.ts";
import { timestamp } from "./ids.ts";
import type { Log } from "./log.ts";
import type { Orders } from "./orders.ts";
import type { AckIds, HeartbeatBody } from "./protocol.ts";
import { objectOf, Received, textOf } from "./received.ts";
import { ChangeNotifier, quietly } from "./waiting.ts";

const POLL_S = 25;
const SOCKET_RETRY_MS = 60_000; // how long to poll before the WebSocket is tried again
const PULSE_TIMEOUT_S = 5;
const ACKS_AT_ONCE = 500;
const CLOSE_MS = 2000;
const STEADY_MS = 5000; // a channel open this long counts as healthy
const IDLE_MS = 1000;
const POLL_ITEMS = 1000;

/** No response arrived; carries the `Unsent` reason. The agent never sees it. */
export class NoResponse extends Error {
  readonly why: Unsent;

  constructor(why: Unsent) {
    super(why.reason);
    this.why = why;
  }
}

export class Receiver {
  #agentId: string;
  #path: string;
  #credentials: GatewayCredentials;
  #delivery: Delivery;
  #orders: Orders;
  #pulse: () => HeartbeatBody;
  #heartbeatS: number | null;
  #log: Log;
  #loosen: Loosen;
  #running: Promise<void> | null = null;
  #work = new ChangeNotifier(); // acknowledgements to send, or the end
  #stop = new AbortController();
  #beat: ReturnType<typeof setTimeout> | undefined;
  #complaint = "";

  constructor(
    agentId: string,
    credentials: GatewayCredentials,
    delivery: Delivery,
    orders: Orders,
    {
      pulse,
      heartbeatS,
      log,
      loosen,
    }: { pulse: () => HeartbeatBody; heartbeatS: number | null; log: Log; loosen: Loosen },
  ) {
    this.#agentId = agentId;
    this.#path = `/v1/agents/${encodeURIComponent(agentId)}`;
    this.#credentials = credentials;
    this.#delivery = delivery;
    this.#orders = orders;
    this.#pulse = pulse;
    this.#heartbeatS = heartbeatS;
    this.#log = log;
    this.#loosen = loosen;
    orders.on_acks = () => this.#work.notify();
  }

  get isOpen(): boolean {
    return this.#running !== null;
  }

  /** Starts listening; returns at once. */
  open(): void {
    if (this.#running !== null || this.#orders.closed) return;
    this.#running = this.#keepListening();
    this.#beatLater();
  }

  /** POST to the gateway; resolves with status and body, rejects with `NoResponse` if there is none. */
  async request(path: string, body: unknown, timeoutS: number): Promise<{ status: number; body: string }> {
    if (this.#orders.closed) throw new NoResponse({ reason: "the agent was closed" });
    return this.#ask("POST", path, body, timeoutS);
  }

  /** Wakes all waiters and closes: acknowledges accepted items, closes the channel. */
  async close(): Promise<void> {
    this.#orders.close();
    clearTimeout(this.#beat);
    this.#work.notify();
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
    const reply = await request(this.#credentials, method, path, text, timeoutS, undefined, ending);
    if ("reason" in reply) throw new NoResponse(reply);
    return reply;
  }

  async #keepListening(): Promise<void> {
    let failures = 0;
    while (!this.#orders.closed) {
      const began = performance.now();
      let why: Unsent = { reason: "the channel was closed" };
      try {
        await this.#listen();
      } catch (error) {
        if (error instanceof NoResponse) why = error.why;
        else {
          // The loop: log, wait, continue.
          this.#log("error", `${this.#agentId}: listening failed; retrying (${error})`);
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

  /** Logs each reason once; the outbox already reports an unreachable gateway. */
  #complain(why: Unsent): void {
    if (why.reason === this.#complaint) return;
    this.#complaint = why.reason;
    this.#log(why.needs_a_person ? "warning" : "info", `${this.#agentId} is not receiving: ${why.reason}`);
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

  /** By WebSocket; if that fails, by long poll. Resolves when the connection ends. */
  async #listen(): Promise<void> {
    if (!(await this.#bySocket()) && !this.#orders.closed) await this.#poll();
  }

  /** True if the gateway sent `hello` before the socket ended. */
  #bySocket(): Promise<boolean> {
    return runSocket({
      url: `${this.#credentials.url.replace(/^http/, "ws")}${this.#path}/channel`,
      key: this.#credentials.key,
      opening_s: this.#delivery.timeout_s,
      ping_s: this.#delivery.ping_s,
      onFrame: (frame) => this.#onFrame(frame),
      acks: () => this.#orders.takeAcks(ACKS_AT_ONCE),
      work: this.#work,
      stop: this.#stop.signal,
      loosen: this.#loosen,
    });
  }

  /** Handles one frame of the channel; true for the gateway's `hello`. */
  #onFrame(frame: unknown): boolean {
    let data: Record<string, unknown>;
    try {
      data = objectOf(JSON.parse(String(frame)));
    } catch {
      data = {};
    }
    if (data.type === "hello") {
      const paused = Array.isArray(data.paused) ? data.paused.map(String) : [];
      const text = textOf(objectOf(data.instructions).text);
      const everywhere = data.paused_everywhere === true;
      this.#orders.hello(textOf(data.entity_id), paused, data.stopped === true, text, everywhere);
      this.#complaint = "";
      return true;
    }
    if (data.type === "delivery") {
      const item = Received.read(data);
      if (item !== null) {
        this.#orders.take(item);
        return false;
      }
    }
    if (data.type === undefined || data.type === "delivery")
      this.#log("warning", `${this.#agentId}: a frame of the channel could not be read`);
    return false;
  }

  /** Reads the inbox by long poll for a while, with the same items and acknowledgements. */
  async #poll(): Promise<void> {
    const end = performance.now() + SOCKET_RETRY_MS;
    const unwatch = this.#work.watch(() => void this.#acknowledgeByPost());
    try {
      while (performance.now() < end && !this.#orders.closed) {
        const waitS = this.#orders.connected ? POLL_S : 0; // first check that there is an inbox
        const path = `${this.#path}/inbox?wait=${waitS}&limit=${POLL_ITEMS}`;
        const limit = waitS + this.#delivery.timeout_s;
        const { status, body } = await this.#ask("GET", path, undefined, limit, this.#stop.signal);
        if (status !== 200) throw new NoResponse(inboxFailure(status));
        const items = readItems(body);
        if (!this.#orders.connected) {
          await this.#learnEntityId();
          this.#orders.setConnected(true);
          this.#complaint = "";
        }
        const news = items.filter((item) => this.#orders.take(item));
        if (items.length && !news.length) await this.#sleep(IDLE_MS); // they wait until the agent fetches them
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
        const reply = await this.#ask(
          "POST",
          `${this.#path}/inbox/ack`,
          body,
          this.#delivery.timeout_s,
        ).catch(() => null);
        if (reply === null || reply.status >= 300) {
          this.#orders.giveBackAcks(ids); // sent a little later, possibly by the next connection
          if (!this.#orders.closed) quietly(() => this.#work.notify(), IDLE_MS);
          return;
        }
      }
    } finally {
      this.#posting = false;
    }
  }

  /** Without a `hello` frame, the registry returns it. */
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

  // Heartbeats.

  /** Sends a heartbeat now. */
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
      const pulse: HeartbeatBody = { ...this.#pulse(), timestamp: timestamp() };
      const { status } = await this.#ask("POST", "/v1/heartbeat", pulse, PULSE_TIMEOUT_S, this.#stop.signal);
      if (status >= 400) this.#log("debug", `${this.#agentId}: the heartbeat was answered ${status}`);
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
  if (!Array.isArray(items)) throw new NoResponse({ reason: "the server at this address is not a gateway" });
  return items.map(Received.read).filter((item) => item !== null);
}

function inboxFailure(status: number): Unsent {
  return status === 401 || status === 403 ? unsent(status, null) : { reason: `the inbox answered ${status}` };
}
