/**
 * Closes outboxes when the process ends, and keeps open channels from keeping it alive.
 *
 * Rule: when nothing is left to do, every outbox is closed (sent or spooled); at `process.exit` there is no time to
 * send, so everything is spooled at once. An open channel does not keep a process alive; a waiting caller does.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import diagnostics from "node:diagnostics_channel";
import type { Loosen } from "../channel.ts";
import type { Ending, Outbox } from "../outbox.ts";
import type { Ambient } from "../sender.ts";
import type { SessionBranch } from "../session.ts";

const open = new Set<Outbox>();
let watching = false;

export const ending: Ending = {
  register(outbox) {
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
  unregister(outbox) {
    open.delete(outbox);
  },
};

const storage = new AsyncLocalStorage<SessionBranch>();

/** Also applies to everything awaited or started inside. */
export const ambient: Ambient = {
  current: () => storage.getStore(),
  run: (line, action) => storage.run(line, action),
};

interface Headers {
  request?: { origin?: unknown; path?: unknown };
  socket?: { unref?: () => void };
}

/**
 * Node's WebSocket has no `unref`. A diagnostics channel of Node's HTTP client publishes the socket when the request's
 * headers are sent; without it (another runtime), an open channel keeps the process alive until `close`.
 */
export const loosen: Loosen = (url) => {
  const target = new URL(url);
  const path = target.pathname;
  let opened: Headers["socket"];
  const onHeaders = (message: unknown): void => {
    const { request, socket } = message as Headers;
    if (request?.path === path && new URL(String(request.origin)).host === target.host) opened = socket;
  };
  diagnostics.subscribe("undici:client:sendHeaders", onHeaders);
  return () => {
    diagnostics.unsubscribe("undici:client:sendHeaders", onHeaders);
    opened?.unref?.();
  };
};
