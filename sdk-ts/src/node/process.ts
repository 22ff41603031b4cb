/**
 * What happens to outboxes when the process ends, and what must not keep it from ending.
 *
 * Law: when nothing is left to do every outbox is closed (sent, or spooled); at `process.exit` there is no time to send,
 * so all goes to the spool at once. An open channel does not keep a process alive; whoever waits for something does.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import diagnostics from "node:diagnostics_channel";
import type { Loosen } from "../channel.ts";
import type { Ending, Outbox } from "../outbox.ts";
import type { Line } from "../session.ts";
import type { Ambient } from "../speaker.ts";

const open = new Set<Outbox>();
let watching = false;

export const ending: Ending = {
  keep(outbox) {
    open.add(outbox);
    if (watching) return;
    watching = true;
    process.on("beforeExit", () => {
      for (const one of open) void one.close();
    });
    process.on("exit", () => {
      for (const one of [...open]) one.endNow();
    });
  },
  forget(outbox) {
    open.delete(outbox);
  },
};

const storage = new AsyncLocalStorage<Line>();

/** Also in what is awaited and started inside. */
export const ambient: Ambient = {
  current: () => storage.getStore(),
  run: (line, act) => storage.run(line, act),
};

interface Headers {
  request?: { origin?: unknown; path?: unknown };
  socket?: { unref?: () => void };
}

/**
 * Node's WebSocket has no `unref`. The sockets under it are told of on a diagnostics channel of Node's HTTP client when
 * the request's head is sent; where there is none (another runtime), an open channel keeps the process until `close`.
 */
export const loosen: Loosen = (url) => {
  const wanted = new URL(url);
  const path = wanted.pathname;
  let found: Headers["socket"];
  const see = (message: unknown): void => {
    const { request, socket } = message as Headers;
    if (request?.path === path && new URL(String(request.origin)).host === wanted.host) found = socket;
  };
  diagnostics.subscribe("undici:client:sendHeaders", see);
  return () => {
    diagnostics.unsubscribe("undici:client:sendHeaders", see);
    found?.unref?.();
  };
};
