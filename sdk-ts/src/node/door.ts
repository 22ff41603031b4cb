/**
 * Where the gateway is and with which key to knock, in Node.
 *
 * Order: options, `OBSERVATORY_URL` + `OBSERVATORY_KEY`, the `credentials.json` of the `OBSERVATORY_DATA` folder, that of
 * `~/.observatory`. A URL and a key are looked for separately; but a key from a file is used only for that file's URL:
 * it must never be sent to a stranger.
 */

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Door } from "../client.ts";
import { checkedUrl } from "../door.ts";
import { NotConfigured } from "../errors.ts";

const BOTH = "OBSERVATORY_URL and OBSERVATORY_KEY";
type Given = { url?: string | undefined; key?: string | undefined; data?: string | undefined };
type Environment = Readonly<Record<string, string | undefined>>;

export function dataFolder({ data }: Given, environment: Environment = process.env): string {
  const given = data || environment.OBSERVATORY_DATA;
  return given ? given.replace(/^~(?=$|\/)/, homedir()) : join(homedir(), ".observatory");
}

/** The gateway's address and key, or `NotConfigured` with a sentence that says what to do. */
export function findDoor(given: Given, environment: Environment = process.env): Door {
  const url = given.url || environment.OBSERVATORY_URL;
  const key = given.key || environment.OBSERVATORY_KEY;
  const found =
    url && key ? { url, key } : fromFile(join(dataFolder(given, environment), "credentials.json"), url, key);
  return { url: checkedUrl(found.url), key: found.key };
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
      `${path} is not a credentials file: start \`observatory serve\` again or set ${BOTH}.`,
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
  return (
    `No gateway found: ${BOTH} are not set and ${path} does not exist. Start one with \`observatory serve\`, or set ` +
    `${BOTH}, or point OBSERVATORY_DATA at the folder of a running one.`
  );
}
