// Kill-switch commands. Arming and confirming show no toast: the page shows their progress in place, because
// each may have to be repeated after a sign-in. Releasing shows a toast like any other command.
import { Problem, send } from "~/api/client";
import { refetch } from "~/api/queries";
import { plural } from "~/plural";
import type { ArmedKillSwitch, ConfirmedKillSwitch, NewKillSwitch } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

const TOUCHED = ["/v1/kill-switch", "/v1/audit/acts", "/v1/agents", "/v1/alerts"];
const WHO = "/v1/whoami";

/** A 401 means the browser is signed out: check at once, so that the page shows it. */
async function checkingSignIn<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Problem && error.code === 401) refetch(WHO);
    throw error;
  } finally {
    refetch(...TOUCHED);
  }
}

export function arm(body: NewKillSwitch): Promise<ArmedKillSwitch> {
  return checkingSignIn(() => send("POST /v1/kill-switch", { body }));
}

export function confirm(kill_id: string, token: string): Promise<ConfirmedKillSwitch> {
  return checkingSignIn(() =>
    send("POST /v1/kill-switch/{kill_id}/confirm", { params: { kill_id }, body: { token } }),
  );
}

/** `stay`: how many agent types have their own kill switch; their held messages are not released. */
export function release(kill_id: string, what: string, reason: string, stay = 0, refused?: Refused) {
  return runCommand(
    "The release",
    () =>
      checkingSignIn(() =>
        send("POST /v1/kill-switch/{kill_id}/release", { params: { kill_id }, body: { reason } }),
      ),
    ({ held, told }) => ({
      text: `The kill switch for ${what} is being released: ${
        stay > 0
          ? `${plural(held, "message")} held, those of ${plural(stay, "agent type")} still stopped stay held`
          : `${plural(held, "held message is", "held messages are")} sent, oldest first`
      }; ${plural(told, "agent")} notified.`,
    }),
    refused,
  );
}

/**
 * Partial release: agent types that stay stopped get their own kill switch first, and only then the wide one
 * is released. If it is interrupted in the middle, everything is still stopped.
 */
export async function narrow(
  kill_id: string,
  what: string,
  stay: readonly { scope: "class" | "cluster"; target: string }[],
  reason: string,
  onProgress: (done: number) => void,
) {
  for (const [done, one] of stay.entries()) {
    onProgress(done);
    await stop({ ...one, reason });
  }
  onProgress(stay.length);
  return release(kill_id, what, reason, stay.length);
}

async function stop(body: NewKillSwitch): Promise<void> {
  try {
    const armed = await send("POST /v1/kill-switch", { body });
    const first = await confirm(armed.kill_id, armed.token);
    await confirm(armed.kill_id, first.token ?? "");
  } catch (error) {
    // They are already stopped by another kill switch, which is the desired state.
    if (!(error instanceof Problem && error.reason === "already_engaged")) throw error;
  }
}
