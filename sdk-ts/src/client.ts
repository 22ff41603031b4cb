/**
 * HTTP client: one request to the gateway, with the result as a value.
 *
 * It never throws for network or gateway failures: a batch is answered line by line, or `Unsent` with the reason and
 * whether retrying makes sense. Keys and payloads never appear in its reasons, and the key never in a URL.
 */

import type { Accepted, Rejected as Refusal, Refused } from "./protocol.ts";

/** The gateway's answer to one message (ruling 10). */
export type Answer = Partial<Omit<Accepted, "status"> & Omit<Refusal, "status"> & Omit<Refused, "status">> & {
  code: number;
  status?: string;
};

export interface GatewayCredentials {
  url: string;
  key: string;
}

export interface Unsent {
  reason: string;
  retry_after_s?: number | undefined;
  /** The gateway is reachable and asked to wait (429): nothing has to be written to disk. */
  busy?: boolean;
  /** The status that refused the whole body: retry with smaller batches, down to one line, to find the cause. */
  refused?: number;
  needs_a_person?: boolean;
  /** The gateway is reachable and refuses this key: wrong, expired or revoked. */
  key_refused?: boolean;
}

export type Outcome = { answers: Answer[] } | Unsent;

const MAX_RETRY_AFTER_S = 600; // a broken header must not silence an agent for a year

export const isAccepted = (answer: Answer): boolean => answer.code >= 200 && answer.code < 300;

/** False when the gateway could not process the line now and it must be sent again. */
export const isFinal = (answer: Answer): boolean =>
  answer.code < 500 && ![401, 408, 425, 429].includes(answer.code);

export interface HttpReply {
  status: number;
  body: string;
  retry_after: string | null;
}

/** One request with the key; `Unsent` if there is no response. */
export async function request(
  credentials: GatewayCredentials,
  method: string,
  path: string,
  body: string | undefined,
  timeoutS: number,
  kind = "application/json",
  ending?: AbortSignal,
): Promise<HttpReply | Unsent> {
  const headers: Record<string, string> = { Authorization: `Bearer ${credentials.key}` };
  if (body !== undefined) headers["Content-Type"] = kind;
  const late = new AbortController();
  const stop = (): void => late.abort();
  const timer = setTimeout(stop, timeoutS * 1000);
  ending?.addEventListener("abort", stop);
  if (ending?.aborted) stop();
  try {
    const response = await fetch(credentials.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      // A login cookie of the page must not act for its agent; a redirect must not send the key elsewhere.
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
      signal: late.signal,
    });
    return {
      status: response.status,
      body: await response.text(),
      retry_after: response.headers.get("Retry-After"),
    };
  } catch (error) {
    return { reason: `${nameOf(error)} at ${credentials.url}` };
  } finally {
    clearTimeout(timer);
    ending?.removeEventListener("abort", stop);
  }
}

/** The system's error code if there is one (`ECONNREFUSED`). */
function nameOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } } | null)?.cause;
  return typeof cause?.code === "string" ? cause.code : String((error as Error | null)?.name ?? "no answer");
}

export async function send(
  credentials: GatewayCredentials,
  lines: readonly string[],
  timeoutS: number,
  ending: AbortSignal,
): Promise<Outcome> {
  const body = `${lines.join("\n")}\n`;
  const reply = await request(
    credentials,
    "POST",
    "/v1/messages",
    body,
    timeoutS,
    "application/x-ndjson",
    ending,
  );
  if ("reason" in reply) return reply;
  return reply.status === 200 ? readAnswers(reply.body) : unsent(reply.status, reply.retry_after);
}

/** In order; fewer than were sent if the connection broke. */
export function readAnswers(body: string): Outcome {
  const answers: Answer[] = [];
  for (const line of body.split("\n").filter((one) => one.trim())) {
    try {
      const answer = JSON.parse(line);
      if (typeof answer?.code !== "number") break;
      answers.push(answer);
    } catch {
      break;
    }
  }
  return answers.length ? { answers } : { reason: "the server at this address is not a gateway" };
}

/** The meaning of a status that answered no line. */
export function unsent(code: number, retryAfter: string | null): Unsent {
  const later = retryAfterS(retryAfter);
  switch (code) {
    case 400:
    case 413:
    case 422:
      return { reason: `the request was refused with ${code}`, refused: code };
    case 401:
    case 403:
      return {
        reason: `the gateway refuses this key (${code}): check OBSERVATORY_KEY, or make a new agent key with \`observatory keys\``,
        retry_after_s: later,
        needs_a_person: true,
        key_refused: true,
      };
    case 404:
    case 405:
    case 415:
      return { reason: `no gateway at this address (${code}): check OBSERVATORY_URL`, needs_a_person: true };
    default:
      return { reason: `the gateway answered ${code}`, retry_after_s: later, busy: code === 429 };
  }
}

/** RFC 9110 §10.2.3: seconds or a date. */
export function retryAfterS(value: string | null, now = Date.now()): number | undefined {
  if (value === null || !value.trim()) return undefined;
  const seconds = Number(value);
  const delay = Number.isNaN(seconds) ? (Date.parse(value) - now) / 1000 : seconds;
  return Number.isFinite(delay) ? Math.min(Math.max(delay, 0), MAX_RETRY_AFTER_S) : undefined;
}
