/**
 * One request to the gateway, and what came of it as a value.
 *
 * It never throws for what the network or the gateway does: a batch is `Answered` line by line, or `Unsent` with the
 * reason and whether trying again makes sense. Keys and payloads never appear in its reasons, and the key never in
 * an address.
 */

import type { Accepted, Rejected as Refusal, Refused } from "./protocol.ts";

/** The gateway's word on one message (ruling 10). */
export type Answer = Partial<Omit<Accepted, "status"> & Omit<Refusal, "status"> & Omit<Refused, "status">> & {
  code: number;
  status?: string;
};

export interface Door {
  url: string;
  key: string;
}

export interface Unsent {
  reason: string;
  retry_after_s?: number | undefined;
  /** The gateway is there and asked for patience (429): nothing need go to disk. */
  busy?: boolean;
  /** The status that judged the body itself: a smaller batch, at last one line, shows which. */
  refused?: number;
  needs_a_person?: boolean;
  /** The gateway is there and does not take this key: wrong, expired or revoked. */
  barred?: boolean;
}

export type Outcome = { answers: Answer[] } | Unsent;

const LONGEST_RETRY_AFTER_S = 600; // a broken header must not silence an agent for a year

export const isAccepted = (answer: Answer): boolean => answer.code >= 200 && answer.code < 300;

/** False when the gateway could not judge the line now and it must be sent again. */
export const isFinal = (answer: Answer): boolean =>
  answer.code < 500 && ![401, 408, 425, 429].includes(answer.code);

export interface Heard {
  status: number;
  body: string;
  retry_after: string | null;
}

/** One request with the key; an `Unsent` for whatever is no answer. */
export async function asked(
  door: Door,
  method: string,
  path: string,
  body: string | undefined,
  timeoutS: number,
  kind = "application/json",
  ending?: AbortSignal,
): Promise<Heard | Unsent> {
  const headers: Record<string, string> = { Authorization: `Bearer ${door.key}` };
  if (body !== undefined) headers["Content-Type"] = kind;
  const late = new AbortController();
  const stop = (): void => late.abort();
  const timer = setTimeout(stop, timeoutS * 1000);
  ending?.addEventListener("abort", stop);
  if (ending?.aborted) stop();
  try {
    const response = await fetch(door.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      // A login cookie of the page must not speak for its agent; a redirect must not carry the key elsewhere.
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
    return { reason: `${nameOf(error)} at ${door.url}` };
  } finally {
    clearTimeout(timer);
    ending?.removeEventListener("abort", stop);
  }
}

/** The system's word for it where there is one (`ECONNREFUSED`). */
function nameOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } } | null)?.cause;
  return typeof cause?.code === "string" ? cause.code : String((error as Error | null)?.name ?? "no answer");
}

export async function send(
  door: Door,
  lines: readonly string[],
  timeoutS: number,
  ending: AbortSignal,
): Promise<Outcome> {
  const body = `${lines.join("\n")}\n`;
  const heard = await asked(door, "POST", "/v1/messages", body, timeoutS, "application/x-ndjson", ending);
  if ("reason" in heard) return heard;
  return heard.status === 200 ? readAnswers(heard.body) : unsent(heard.status, heard.retry_after);
}

/** In order; fewer than were sent if the connection broke on the way. */
export function readAnswers(body: string): Outcome {
  const answers: Answer[] = [];
  for (const line of body.split("\n").filter((one) => one.trim())) {
    try {
      const told = JSON.parse(line);
      if (typeof told?.code !== "number") break;
      answers.push(told);
    } catch {
      break;
    }
  }
  return answers.length ? { answers } : { reason: "what answers there is not a gateway" };
}

/** What an answer means that judged no line. */
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
        barred: true,
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
  const found = Number.isNaN(seconds) ? (Date.parse(value) - now) / 1000 : seconds;
  return Number.isFinite(found) ? Math.min(Math.max(found, 0), LONGEST_RETRY_AFTER_S) : undefined;
}
