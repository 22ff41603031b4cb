/** Validation of a gateway's URL, for both platforms. */

import { NotConfigured } from "./errors.ts";

export function checkedUrl(url: string): string {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch {
    throw invalid(url);
  }
  if (!["http:", "https:"].includes(parts.protocol) || !parts.hostname) throw invalid(url);
  // The address is logged: a secret in it would be too.
  if (parts.username || parts.password)
    throw new NotConfigured("a gateway's address must not contain a user or a password: use the key.");
  return url.replace(/\/+$/, "");
}

function invalid(url: string): NotConfigured {
  return new NotConfigured(
    `${JSON.stringify(url)} is not a gateway's address: it must look like http://127.0.0.1:4800.`,
  );
}
