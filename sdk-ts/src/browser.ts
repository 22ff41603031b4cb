/**
 * The SDK in a browser: the key comes only from options, the spool is in local storage.
 *
 * Every visitor of the page can read its key: use a separate key for each page, bound to its agent and limited in time.
 * A page of another origin must be listed in the gateway's `cors_origins`.
 */

import { checkedUrl } from "./address.ts";
import { type AgentOptions, BaseAgent } from "./agent.ts";
import { storage } from "./browser/storage.ts";
import { NotConfigured } from "./errors.ts";
import { toConsole } from "./log.ts";
import type { Ending, Outbox } from "./outbox.ts";

export * from "./index.ts";

const open = new Set<Outbox>();

/** A page that is hidden has no time to send: everything is spooled. It may return, so nothing is closed. */
const ending: Ending = {
  register(outbox) {
    if (!open.size) globalThis.addEventListener?.("pagehide", spillAll);
    open.add(outbox);
  },
  unregister(outbox) {
    open.delete(outbox);
  },
};

function spillAll(): void {
  for (const outbox of open) outbox.spill();
}

export class Agent extends BaseAgent {
  constructor(agentId: string, options: AgentOptions & { key: string }) {
    super(agentId, options, {
      credentials({ url = globalThis.location?.origin, key }) {
        if (!key)
          throw new NotConfigured("No key: pass the option key (an agent key, `obs_…`) to the agent.");
        if (!url)
          throw new NotConfigured("No gateway: pass the option url (for example http://127.0.0.1:4800).");
        return { url: checkedUrl(url), key };
      },
      ownCredentials: (credentials) => credentials,
      cluster: () => undefined,
      spools: (given) => storage(given.log ?? toConsole),
      ending,
      ambient: { current: () => undefined, run: (_, action) => action() },
      loosen: () => () => {},
    });
  }
}
