// System prompts of an agent type. `was` is the version the user saw in force (optimistic concurrency).
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { plural } from "~/plural";
import { type Refused, runCommand } from "./session";

const TOUCHED = ["/v1/instructions", "/v1/audit/acts"];
const agents = (n: number) => `${plural(n, "agent")} notified`;

export function issue(agent_type: string, text: string, note: string, was: number, refused?: Refused) {
  return runCommand(
    "Issuing the instructions",
    () =>
      send("PUT /v1/instructions/{agent_type}", {
        params: { agent_type },
        body: { text, note, was },
      }),
    ({ version, told }) => ({
      text: `Version ${version} is in force for ${agent_type}; ${agents(told)}.`,
      undo: was > 0 ? () => rollBack(agent_type, was, version) : undefined,
    }),
    refused,
  ).finally(() => refetch(...TOUCHED));
}

export function rollBack(agent_type: string, version: number, was: number, refused?: Refused) {
  return runCommand(
    "Rolling back",
    () =>
      send("POST /v1/instructions/{agent_type}/rollback", {
        params: { agent_type },
        body: { version, was },
      }),
    (issued) => ({
      text: `Version ${version} is in force again for ${agent_type}, as version ${issued.version}; ${agents(issued.told)}.`,
    }),
    refused,
  ).finally(() => refetch(...TOUCHED));
}
