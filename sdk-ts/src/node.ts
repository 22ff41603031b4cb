/** The SDK in Node: keys from the environment or `agent.json`, the spool in a folder. */

import { join } from "node:path";
import { type AgentOptions, BaseAgent } from "./agent.ts";
import { toConsole } from "./log.ts";
import { dataFolder, findCredentials, ownCredentials } from "./node/credentials.ts";
import { Files } from "./node/files.ts";
import { ambient, ending, loosen } from "./node/process.ts";

export * from "./index.ts";

export class Agent extends BaseAgent {
  constructor(agentId: string, options: AgentOptions = {}) {
    super(agentId, options, {
      credentials: findCredentials,
      ownCredentials,
      cluster: () => process.env.OBSERVATORY_CLUSTER,
      spools: (given) => new Files(join(dataFolder(given), "spool-ts"), given.log ?? toConsole),
      ending,
      ambient,
      loosen,
    });
  }
}
