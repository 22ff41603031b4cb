/**
 * The SDK in a browser: the key only by option, the spool in local storage.
 *
 * Whoever opens the page has its key: give each page a key of its own, bound to its agent and limited in time. A page of
 * another origin must be named in the gateway's `cors_origins`.
 */

import { type AgentOptions, BaseAgent } from "./agent.ts";
import { storage } from "./browser/storage.ts";
import { checkedUrl } from "./door.ts";
import { NotConfigured } from "./errors.ts";
import { toConsole } from "./log.ts";
import type { Ending, Outbox } from "./outbox.ts";

export * from "./index.ts";

const open = new Set<Outbox>();

/** A page that goes away has no time to send: all to the spool. It may come back, so nothing is closed. */
const ending: Ending = {
  keep(outbox) {
    if (!open.size) globalThis.addEventListener?.("pagehide", spillAll);
    open.add(outbox);
  },
  forget(outbox) {
    open.delete(outbox);
  },
};

function spillAll(): void {
  for (const outbox of open) outbox.spill();
}

export class Agent extends BaseAgent {
  constructor(agentId: string, options: AgentOptions & { key: string }) {
    super(agentId, options, {
      door({ url = globalThis.location?.origin, key }) {
        if (!key)
          throw new NotConfigured("No key: give the option key (an agent key, `obs_…`) to the page's agent.");
        if (!url)
          throw new NotConfigured("No gateway: give the option url (for example http://127.0.0.1:4800).");
        return { url: checkedUrl(url), key };
      },
      ownDoor: (door) => door,
      cluster: () => undefined,
      spools: (given) => storage(given.log ?? toConsole),
      ending,
      ambient: { current: () => undefined, run: (_, act) => act() },
      loosen: () => () => {},
    });
  }
}
