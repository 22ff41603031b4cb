// Registry commands: set traffic splits, open and close circuits, accept and retire versions. Each carries
// the version the user saw (`was`, optimistic concurrency), so that nothing unread is overwritten.
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import type { RouteItem, VersionRow } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

type Weights = Record<string, number>;
const TOUCHED = ["/v1/routes", "/v1/capabilities", "/v1/breakers", "/v1/versions"];

/** `was`: the weights the user saw, {} for none. They can be restored if there were any. */
export function setTrafficSplit(
  capability: string,
  weights: Weights,
  was: Weights,
  refused?: Refused,
): Promise<RouteItem | null> {
  return runCommand(
    "Saving the weights",
    () => send("PUT /v1/routes", { body: { capability, weights, was } }),
    () => ({
      text: `The traffic split of ${capability} applies from the next message.`,
      undo: Object.keys(was).length > 0 ? () => setTrafficSplit(capability, was, weights) : undefined,
    }),
    refused,
  ).finally(() => refetch(...TOUCHED));
}

/** Grants an agent a capability (or `cluster:<id>`), or revokes it; the opposite undoes it. */
export function changeGrants(agent_id: string, verb: "grant" | "revoke", word: string): Promise<unknown> {
  const given = verb === "grant";
  return runCommand(
    given ? "Granting" : "Revoking",
    () => send("POST /v1/agents/{agent_id}/grants", { params: { agent_id }, body: { [verb]: [word] } }),
    () => ({
      text: given ? `${agent_id} is granted ${word}.` : `The grant of ${word} to ${agent_id} is revoked.`,
      undo: () => changeGrants(agent_id, given ? "revoke" : "grant", word),
    }),
  ).finally(() => refetch("/v1/agents", "/v1/agents/{agent_id}", ...TOUCHED));
}

export function openCircuit(capability: string) {
  return runCommand(
    "Opening the circuit",
    () => send("POST /v1/breakers/{capability}", { params: { capability }, body: { state: "open" } }),
    () => ({
      text: `The circuit of ${capability} is open: its work is queued until a person closes it.`,
      undo: () => closeCircuit(capability),
    }),
  ).finally(() => refetch(...TOUCHED));
}

export function closeCircuit(capability: string) {
  return runCommand(
    "Closing the circuit",
    () => send("POST /v1/breakers/{capability}", { params: { capability }, body: { state: "closed" } }),
    () => ({
      text: `The circuit of ${capability} is closed and its counters are reset; queued work is sent.`,
    }),
  ).finally(() => refetch(...TOUCHED));
}

/** A version may be recorded in two spellings (`v1.0.0`, `1.0.0`); the gateway expects it once. */
export function distinct(rows: readonly VersionRow[]): VersionRow[] {
  const bare = ({ version }: VersionRow) => version.replace(/^v/, "");
  return rows.filter((row, n) => rows.findIndex((other) => bare(other) === bare(row)) === n);
}

type Seen = Record<string, VersionRow["status"]>;

/** `before` is the list the user saw: it can be restored. */
export function setVersions(
  agent_type: string,
  versions: VersionRow[],
  before: VersionRow[],
  text: string,
  refused?: Refused,
) {
  const seen = (rows: readonly VersionRow[]): Seen =>
    Object.fromEntries(rows.map((row) => [row.version, row.status]));
  return runCommand(
    "Changing the versions",
    () => send("PUT /v1/versions", { body: { agent_type, versions: distinct(versions), was: seen(before) } }),
    () => ({
      text,
      undo: before.length > 0 ? () => restoreVersions(agent_type, before) : undefined,
    }),
    refused,
  ).finally(() => refetch(...TOUCHED));
}

/** Versions registered in the meantime stay registered, as retired: versions are never deleted. */
function restoreVersions(agent_type: string, before: VersionRow[]) {
  return runCommand(
    "Restoring the versions",
    () => send("PUT /v1/versions", { body: { agent_type, versions: distinct(before) } }),
    () => ({ text: `The versions of ${agent_type} are restored.` }),
  ).finally(() => refetch(...TOUCHED));
}
