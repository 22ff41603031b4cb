/**
 * Where the gateway is and with which key to knock, in Node.
 *
 * Order: options, `OBSERVATORY_URL` + `OBSERVATORY_KEY`, the `agent.json` of the `OBSERVATORY_DATA` folder, that of
 * `~/.observatory`. A URL and a key are looked for separately; but a key from a file is used only for that file's URL:
 * it must never be sent to a stranger. An agent that was bound has an `agent.json` of its own below the folder.
 *
 * Law: `credentials.json` holds the keys of the people who govern agents. Nothing here opens it (S980).
 */

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import type { Door } from "../client.ts";
import { checkedUrl } from "../door.ts";
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

/** Where the bound key of one agent lies in a data folder. */
export function ownFile(folder: string, agentId: string): string {
  const stem = fileStem(agentId === "." || agentId === ".." ? `${agentId}~` : agentId);
  return join(folder, "agents", stem, AGENT_FILE);
}

/** The gateway's address and key, or `NotConfigured` with a sentence that says what to do. */
export function findDoor(given: Given, agentId?: string, environment: Environment = process.env): Door {
  const url = given.url || environment.OBSERVATORY_URL;
  const key = given.key || environment.OBSERVATORY_KEY;
  const folder = dataFolder(given, environment);
  const own = agentId === undefined ? "" : ownFile(folder, agentId);
  const path = own && existsSync(own) ? own : join(folder, AGENT_FILE);
  const found = url && key ? { url, key } : fromFile(path, url, key);
  return { url: checkedUrl(found.url), key: found.key };
}

/** The same gateway with the key that is bound to this agent, if the folder has one: its inbox takes no other. */
export function ownDoor(door: Door, given: Given, agentId: string): Door {
  const path = ownFile(dataFolder(given), agentId);
  if (!existsSync(path)) return door;
  const own = fromFile(path, undefined, undefined);
  return own.url.replace(/\/+$/, "") === door.url ? { ...door, key: own.key } : door;
}

function fromFile(path: string, url: string | undefined, key: string | undefined): Door {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new NotConfigured(missing(path, url, key));
    throw new NotConfigured(`${path} cannot be read (${code}): run as its owner, or set ${BOTH}.`);
  }
  let told: { url?: unknown; agent_key?: unknown } | null = null;
  try {
    told = JSON.parse(text);
  } catch {
    // Told below: the error's text could quote the file, which holds keys.
  }
  if (typeof told?.url !== "string" || typeof told.agent_key !== "string")
    throw new NotConfigured(
      `${path} is no file of an agent's key: start \`observatory serve\` again or set ${BOTH}.`,
    );
  if (url && url.replace(/\/+$/, "") !== told.url.replace(/\/+$/, ""))
    throw new NotConfigured(
      `No key for ${url}: ${path} is for ${told.url}. Set OBSERVATORY_KEY or give the option key.`,
    );
  return { url: told.url, key: key || told.agent_key };
}

function missing(path: string, url: string | undefined, key: string | undefined): string {
  if (url) return `No key for ${url}: set OBSERVATORY_KEY or give the option key (an agent key, \`obs_…\`).`;
  if (key)
    return "A key but no gateway: set OBSERVATORY_URL or give the option url (for example http://127.0.0.1:4800).";
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
