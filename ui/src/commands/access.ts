// User and API key management: users, roles, sign-in links, keys. Secrets are returned once, at creation, and
// are only displayed.
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import { plural } from "~/plural";
import type { LoginItem, NewKey, NewUser, RoleAnswer, UserItem } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

const TOUCHED = ["/v1/users", "/v1/keys", "/v1/audit/acts", "/v1/whoami"];
const settled = <T>(done: Promise<T>) => done.finally(() => refetch(...TOUCHED));
export type Role = NewUser["role"];

export function createUser(body: NewUser, refused?: Refused) {
  return settled(
    runCommand(
      "Creating the user",
      () => send("POST /v1/users", { body }),
      ({ name, role }) => ({ text: `${name} is now ${role}. Send them the invitation link.` }),
      refused,
    ),
  );
}

export function changeRole(
  { user_id, name, role: was }: UserItem,
  role: Role,
  refused?: Refused,
): Promise<RoleAnswer | null> {
  return settled(
    runCommand(
      "Changing the role",
      () => send("PUT /v1/users/{user_id}", { params: { user_id }, body: { role, was: was as Role } }),
      ({ revoked_keys }) => ({
        text: `${name} is now ${role}.${
          revoked_keys.length > 0
            ? ` ${plural(revoked_keys.length, "key")} with higher permissions revoked.`
            : ""
        }`,
        // Revoked keys stay revoked; if there were none, restoring the old role undoes the change completely.
        undo:
          revoked_keys.length === 0
            ? () => changeRole({ user_id, name, role } as UserItem, was as Role)
            : undefined,
      }),
      refused,
    ),
  );
}

export function disableUser({ user_id, name }: UserItem) {
  return settled(
    runCommand(
      "Disabling the user",
      () => send("POST /v1/users/{user_id}/disable", { params: { user_id } }),
      () => ({ text: `${name} is signed out everywhere and their keys are revoked.` }),
    ),
  );
}

export function endSignIn({ login_id, current }: LoginItem) {
  return runCommand(
    "Ending the session",
    () => send("DELETE /v1/logins/{login_id}", { params: { login_id } }),
    () => ({ text: "That browser is signed out." }),
  ).finally(() => (current ? location.assign("/") : refetch("/v1/logins")));
}

export function createKey(body: NewKey, refused?: Refused) {
  return settled(
    runCommand(
      "Creating the key",
      () => send("POST /v1/keys", { body }),
      ({ label, role }) => ({
        text: `Key “${label}” (${role}) created. Its secret is shown once.`,
      }),
      refused,
    ),
  );
}

export function revokeKey(key_id: string, label: string) {
  return settled(
    runCommand(
      "Revoking the key",
      () => send("DELETE /v1/keys/{key_id}", { params: { key_id } }),
      () => ({ text: `Key “${label}” revoked.` }),
    ),
  );
}
