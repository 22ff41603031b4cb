// The words a class of agents works by. `was` is the version one saw in force: who was first wins.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import { act, type Refused } from "./acts";

const TOUCHED = ["/v1/instructions", "/v1/audit/acts"];
const agents = (n: number) => (n === 1 ? "1 agent is told" : `${n} agents are told`);

export function issue(agent_type: string, text: string, note: string, was: number, refused?: Refused) {
  return act(
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
  ).finally(() => askAgain(...TOUCHED));
}

export function rollBack(agent_type: string, version: number, was: number, refused?: Refused) {
  return act(
    "Rolling back",
    () =>
      send("POST /v1/instructions/{agent_type}/rollback", {
        params: { agent_type },
        body: { version, was },
      }),
    (issued) => ({
      text: `The words of version ${version} are in force again for ${agent_type}, as version ${issued.version}; ${agents(issued.told)}.`,
    }),
    refused,
  ).finally(() => askAgain(...TOUCHED));
}
