// The HTTP client for the gateway's API, typed by route from the generated protocol. A refusal becomes a
// `Problem` with the gateway's own sentence; an unreachable gateway becomes a `Problem` with code 0.
import type { Answers, Bodies, Queries } from "~/protocol/openapi";

type Route = keyof Answers;
type Verb<R extends string> = R extends `${infer V} ${string}` ? V : never;
type Path<R extends string> = R extends `${string} ${infer P}` ? P : never;
export type GetPath = { [R in Route]: Verb<R> extends "GET" ? Path<R> : never }[Route];
export type Answer<R extends Route> = Answers[R];

export interface Fault {
  path: string;
  problem: string;
}

/** Why a request was refused, in the gateway's own sentence; `code` 0 means that it was not reached. */
export class Problem extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    detail: string,
    readonly faults: Fault[] = [],
  ) {
    super(detail);
    this.name = "Problem";
  }
}

const UNREACHABLE = "The gateway cannot be reached. Nothing was changed; try again.";
/** A command whose response never came may have been carried out. */
const UNKNOWN =
  "the gateway did not answer, so the outcome is unknown. Check the state before you try again.";

interface Asked {
  params?: Record<string, string | number>;
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  signal?: AbortSignal;
}

export function address(path: string, { params = {}, query = {} }: Asked = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(params[name] ?? "")),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${filled}?${text}` : filled;
}

export async function call<T>(method: string, path: string, asked: Asked = {}): Promise<T> {
  const init: RequestInit = { method, headers: { accept: "application/json" }, credentials: "same-origin" };
  if (asked.signal) init.signal = asked.signal;
  if (asked.body !== undefined) {
    init.headers = { ...init.headers, "content-type": "application/json" };
    init.body = JSON.stringify(asked.body);
  }
  let response: Response;
  try {
    response = await fetch(address(path, asked), init);
  } catch (error) {
    if (asked.signal?.aborted) throw error;
    throw new Problem(0, "unreachable", method === "GET" ? UNREACHABLE : UNKNOWN);
  }
  const text = await response.text();
  const parsedBody = text ? parsed(text) : null;
  if (!response.ok) throw problemOf(response.status, parsedBody);
  return parsedBody as T;
}

/** The exact bytes of a response, e.g. of a message as it was archived. */
export async function bytes(path: string, asked: Asked = {}): Promise<Uint8Array<ArrayBuffer>> {
  const init: RequestInit = { headers: { accept: "application/octet-stream" }, credentials: "same-origin" };
  if (asked.signal) init.signal = asked.signal;
  let response: Response;
  try {
    response = await fetch(address(path, asked), init);
  } catch (error) {
    if (asked.signal?.aborted) throw error;
    throw new Problem(0, "unreachable", UNREACHABLE);
  }
  if (!response.ok) throw problemOf(response.status, parsed(await response.text()));
  return new Uint8Array(await response.arrayBuffer());
}

/** Read: `get("/v1/sessions/{session_id}", { params: { session_id } })`. */
export function get<P extends GetPath>(
  path: P,
  asked: Omit<Asked, "query" | "body"> & {
    query?: `GET ${P}` extends keyof Queries ? Queries[`GET ${P}`] : Record<string, never>;
  } = {},
): Promise<Answers[`GET ${P}` & Route]> {
  return call("GET", path, asked as Asked);
}

type Writing = Exclude<{ [R in Route]: Verb<R> extends "GET" ? never : R }[Route], never>;

/** Write: `send("POST /v1/sessions/{session_id}/pause", { params, body })`. */
export function send<R extends Writing>(
  route: R,
  asked: Omit<Asked, "query" | "body"> & {
    body?: R extends keyof Bodies ? Bodies[R] : undefined;
    query?: R extends keyof Queries ? Queries[R] : Record<string, never>;
  } = {},
): Promise<Answers[R]> {
  const [method, path] = route.split(" ") as [string, string];
  return call(method, path, asked as Asked);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function problemOf(code: number, answerBody: unknown): Problem {
  if (answerBody && typeof answerBody === "object") {
    const { reason, detail, faults } = answerBody as { reason?: string; detail?: string; faults?: Fault[] };
    return new Problem(code, reason ?? "failed", detail ?? `The gateway answered ${code}.`, faults ?? []);
  }
  return new Problem(code, "failed", `The gateway answered ${code}.`);
}
