// What an operator does to the registry: share out work, open and close circuits, accept and retire versions.
// Each says what it saw (`was`), so that whoever was first wins and nobody overwrites what they did not read.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { RouteItem, VersionRow } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

type Weights = Record<string, number>;
const TOUCHED = ["/v1/routes", "/v1/capabilities", "/v1/breakers", "/v1/versions"];

/** `was`: the weights that were seen, {} for none. They can be put back if there were any. */
export function shareOut(
  capability: string,
  weights: Weights,
  was: Weights,
  refused?: Refused,
): Promise<RouteItem | null> {
  return act(
    "Saving the weights",
    () => send("PUT /v1/routes", { body: { capability, weights, was } }),
    () => ({
      text: `Work for ${capability} is shared out anew, from the next message on.`,
      undo: Object.keys(was).length > 0 ? () => shareOut(capability, was, weights) : undefined,
    }),
    refused,
  ).finally(() => askAgain(...TOUCHED));
}

/** Give an agent the work of a capability (or `cluster:<id>`), or take it; the other way takes it back. */
export function changeGrants(agent_id: string, verb: "grant" | "revoke", word: string): Promise<unknown> {
  const given = verb === "grant";
  return act(
    given ? "Granting" : "Revoking",
    () => send("POST /v1/agents/{agent_id}/grants", { params: { agent_id }, body: { [verb]: [word] } }),
    () => ({
      text: given
        ? `${agent_id} gets work for ${word}.`
        : `${agent_id} gets no more work for ${word} by a grant.`,
      undo: () => changeGrants(agent_id, given ? "revoke" : "grant", word),
    }),
  ).finally(() => askAgain("/v1/agents", "/v1/agents/{agent_id}", ...TOUCHED));
}

export function openCircuit(capability: string) {
  return act(
    "Opening the circuit",
    () => send("POST /v1/breakers/{capability}", { params: { capability }, body: { state: "open" } }),
    () => ({
      text: `The circuit of ${capability} is open: work for it waits until a person closes it.`,
      undo: () => closeCircuit(capability),
    }),
  ).finally(() => askAgain(...TOUCHED));
}

export function closeCircuit(capability: string) {
  return act(
    "Closing the circuit",
    () => send("POST /v1/breakers/{capability}", { params: { capability }, body: { state: "closed" } }),
    () => ({ text: `The circuit of ${capability} is closed and counts anew; what waited goes out.` }),
  ).finally(() => askAgain(...TOUCHED));
}

/** A version may be on record in two spellings (`v1.0.0`, `1.0.0`); the gateway wants it named once. */
export function distinct(rows: readonly VersionRow[]): VersionRow[] {
  const bare = ({ version }: VersionRow) => version.replace(/^v/, "");
  return rows.filter((row, n) => rows.findIndex((other) => bare(other) === bare(row)) === n);
}

type Seen = Record<string, VersionRow["status"]>;

/** `before` is the list that was seen: it can be put back. */
export function setVersions(
  agent_type: string,
  versions: VersionRow[],
  before: VersionRow[],
  text: string,
  refused?: Refused,
) {
  const seen = (rows: readonly VersionRow[]): Seen =>
    Object.fromEntries(rows.map((row) => [row.version, row.status]));
  return act(
    "Changing the versions",
    () => send("PUT /v1/versions", { body: { agent_type, versions: distinct(versions), was: seen(before) } }),
    () => ({
      text,
      undo: before.length > 0 ? () => putBack(agent_type, before) : undefined,
    }),
    refused,
  ).finally(() => askAgain(...TOUCHED));
}

/** Versions registered meanwhile stay registered, as retired: nothing is ever forgotten. */
function putBack(agent_type: string, before: VersionRow[]) {
  return act(
    "Putting the versions back",
    () => send("PUT /v1/versions", { body: { agent_type, versions: distinct(before) } }),
    () => ({ text: `The versions of ${agent_type} are what they were.` }),
  ).finally(() => askAgain(...TOUCHED));
}
