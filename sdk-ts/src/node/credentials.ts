/**
 * Finds the gateway's URL and key in Node: `findCredentials`.
 *
 * Order: options, `OBSERVATORY_URL` + `OBSERVATORY_KEY`, `agent.json` in the `OBSERVATORY_DATA` folder, `agent.json` in
 * `~/.observatory`. URL and key are looked up separately; but a key from a file is used only for that file's URL: it
 * must never be sent to a third party. A bound agent has its own `agent.json` below the folder.
 *
 * Rule: `credentials.json` holds the keys of people who govern agents. Nothing here opens it (S980).
 */

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { checkedUrl } from "../address.ts";
import type { GatewayCredentials } from "../client.ts";
import { NotConfigured } from "../errors.ts";
import { fileStem } from "./files.ts";

const AGENT_FILE = "agent.json";
const BOTH = "OBSERVATORY_URL and OBSERVATORY_KEY";
type Given = { url?: string | undefined; key?: string | undefined; data?: string | undefined };
type Environment = Readonly<Record<string, string | undefined>>;

export function dataFolder({ data }: Given, environment: Environment = process.env): string {
  const given = data || environment.OBSERVATORY_DATA;
  return given ? given.replace(/^~(?=$|\/)/, homedir()) : join(homedir(), ".observatory");
}

/** The path of an agent's bound key in a data folder. */
export function ownFile(folder: string, agentId: string): string {
  const stem = fileStem(agentId === "." || agentId === ".." ? `${agentId}~` : agentId);
  return join(folder, "agents", stem, AGENT_FILE);
}

/** The gateway's address and key, or `NotConfigured` with a message that says what to do. */
export function findCredentials(
  given: Given,
  agentId?: string,
  environment: Environment = process.env,
): GatewayCredentials {
  const url = given.url || environment.OBSERVATORY_URL;
  const key = given.key || environment.OBSERVATORY_KEY;
  const folder = dataFolder(given, environment);
  const own = agentId === undefined ? "" : ownFile(folder, agentId);
  const path = own && existsSync(own) ? own : join(folder, AGENT_FILE);
  const result = url && key ? { url, key } : fromFile(path, url, key);
  return { url: checkedUrl(result.url), key: result.key };
}

/** The same gateway with the key that is bound to this agent, if the folder has one: its inbox accepts no other key. */
export function ownCredentials(
  credentials: GatewayCredentials,
  given: Given,
  agentId: string,
): GatewayCredentials {
  const path = ownFile(dataFolder(given), agentId);
  if (!existsSync(path)) return credentials;
  const own = fromFile(path, undefined, undefined);
  return own.url.replace(/\/+$/, "") === credentials.url ? { ...credentials, key: own.key } : credentials;
}

function fromFile(path: string, url: string | undefined, key: string | undefined): GatewayCredentials {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new NotConfigured(missing(path, url, key));
    throw new NotConfigured(`${path} cannot be read (${code}): run as its owner, or set ${BOTH}.`);
  }
  let file: { url?: unknown; agent_key?: unknown } | null = null;
  try {
    file = JSON.parse(text);
  } catch {
    // Reported below without the error's text, which could quote the file: it holds keys.
  }
  if (typeof file?.url !== "string" || typeof file.agent_key !== "string")
    throw new NotConfigured(
      `${path} is not a valid agent key file: restart \`observatory serve\` or set ${BOTH}.`,
    );
  if (url && url.replace(/\/+$/, "") !== file.url.replace(/\/+$/, ""))
    throw new NotConfigured(
      `No key for ${url}: ${path} is for ${file.url}. Set OBSERVATORY_KEY or pass the option key.`,
    );
  return { url: file.url, key: key || file.agent_key };
}

function missing(path: string, url: string | undefined, key: string | undefined): string {
  if (url) return `No key for ${url}: set OBSERVATORY_KEY or pass the option key (an agent key, \`obs_…\`).`;
  if (key)
    return "A key but no gateway: set OBSERVATORY_URL or pass the option url (for example http://127.0.0.1:4800).";
  if (existsSync(join(dirname(path), "credentials.json")))
    return (
      `${path} does not exist: restart the gateway (\`observatory serve\`), which writes it, or set ${BOTH}. ` +
      "credentials.json holds keys for people; agents do not read it."
    );
  return (
    `No gateway found: ${BOTH} are not set and ${path} does not exist. Start one with \`observatory serve\`, or set ` +
    `${BOTH}, or point OBSERVATORY_DATA at the folder of a running one.`
  );
}
