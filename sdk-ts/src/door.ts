/** What is a gateway's address, for both platforms. */

import { NotConfigured } from "./errors.ts";

export function checkedUrl(url: string): string {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch {
    throw wrong(url);
  }
  if (!["http:", "https:"].includes(parts.protocol) || !parts.hostname) throw wrong(url);
  // An address is told in logs: whatever is secret in it would be too.
  if (parts.username || parts.password)
    throw new NotConfigured("a gateway's address holds no user and no password: use the key.");
  return url.replace(/\/+$/, "");
}

function wrong(url: string): NotConfigured {
  return new NotConfigured(
    `${JSON.stringify(url)} is not a gateway's address: it must look like http://127.0.0.1:4800.`,
  );
}
