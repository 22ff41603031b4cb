// The kill-switch's levers. Arming and confirming say nothing by themselves: the page shows in place where they
// led, since each may have to be told anew after a sign-in. Releasing tells as every other act does.
import { Problem, send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { ArmedKillSwitch, ConfirmedKillSwitch, NewKillSwitch } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

const TOUCHED = ["/v1/kill-switch", "/v1/audit/acts", "/v1/agents", "/v1/alerts"];
const WHO = "/v1/whoami";

/** Whoever is told 401 is signed out by now: ask, so that the page shows it at once. */
async function heard<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Problem && error.code === 401) askAgain(WHO);
    throw error;
  } finally {
    askAgain(...TOUCHED);
  }
}

export function arm(body: NewKillSwitch): Promise<ArmedKillSwitch> {
  return heard(() => send("POST /v1/kill-switch", { body }));
}

export function confirm(kill_id: string, token: string): Promise<ConfirmedKillSwitch> {
  return heard(() =>
    send("POST /v1/kill-switch/{kill_id}/confirm", { params: { kill_id }, body: { token } }),
  );
}

/** `stay`: how many classes have a switch of their own; what these hold does not go on. */
export function release(kill_id: string, what: string, reason: string, stay = 0, refused?: Refused) {
  return act(
    "The release",
    () =>
      heard(() => send("POST /v1/kill-switch/{kill_id}/release", { params: { kill_id }, body: { reason } })),
    ({ held, told }) => ({
      text: `The kill-switch for ${what} is being released: ${
        stay > 0
          ? `of ${held} held, those of the ${stay === 1 ? "class" : `${stay} classes`} that stay stopped wait on`
          : `${held} held ${held === 1 ? "message goes" : "messages go"} on, oldest first`
      }; ${told} ${told === 1 ? "agent is" : "agents are"} told.`,
    }),
    refused,
  );
}

/**
 * Let a part go on: whoever shall stay stopped gets a switch of their own first, and only then the wide one is
 * released. If it breaks off in the middle, everything is still stopped.
 */
export async function narrow(
  kill_id: string,
  what: string,
  stay: readonly { scope: "class" | "cluster"; target: string }[],
  reason: string,
  told: (done: number) => void,
) {
  for (const [done, one] of stay.entries()) {
    told(done);
    await stop({ ...one, reason });
  }
  told(stay.length);
  return release(kill_id, what, reason, stay.length);
}

async function stop(body: NewKillSwitch): Promise<void> {
  try {
    const armed = await send("POST /v1/kill-switch", { body });
    const first = await confirm(armed.kill_id, armed.token);
    await confirm(armed.kill_id, first.token ?? "");
  } catch (error) {
    // Somebody stops them already: that is what was wanted.
    if (!(error instanceof Problem && error.reason === "already_engaged")) throw error;
  }
}
