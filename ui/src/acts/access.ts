// Who may do what: people, their roles, sign-in links, keys. What is secret comes back once and is only shown.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { LoginItem, NewKey, NewUser, RoleAnswer, UserItem } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

const TOUCHED = ["/v1/users", "/v1/keys", "/v1/audit/acts", "/v1/whoami"];
const settled = <T>(done: Promise<T>) => done.finally(() => askAgain(...TOUCHED));
export type Role = NewUser["role"];

export function createUser(body: NewUser, refused?: Refused) {
  return settled(
    act(
      "Creating the user",
      () => send("POST /v1/users", { body }),
      ({ name, role }) => ({ text: `${name} is ${role}; hand over the invitation.` }),
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
    act(
      "Changing the role",
      () => send("PUT /v1/users/{user_id}", { params: { user_id }, body: { role, was: was as Role } }),
      ({ revoked_keys }) => ({
        text: `${name} is ${role}, at once.${
          revoked_keys.length > 0
            ? ` ${revoked_keys.length} ${revoked_keys.length === 1 ? "key" : "keys"} that could do more ended.`
            : ""
        }`,
        // Keys that ended stay ended; without any the old role is the whole of it.
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
    act(
      "Disabling the user",
      () => send("POST /v1/users/{user_id}/disable", { params: { user_id } }),
      () => ({ text: `${name} is signed out everywhere; their keys open nothing any more.` }),
    ),
  );
}

export function endSignIn({ login_id, current }: LoginItem) {
  return act(
    "Ending the sign-in",
    () => send("DELETE /v1/logins/{login_id}", { params: { login_id } }),
    () => ({ text: "That browser is signed out." }),
  ).finally(() => (current ? location.assign("/") : askAgain("/v1/logins")));
}

export function createKey(body: NewKey, refused?: Refused) {
  return settled(
    act(
      "Making the key",
      () => send("POST /v1/keys", { body }),
      ({ label, role }) => ({
        text: `The key “${label}” of the role ${role} is made; its secret is shown once.`,
      }),
      refused,
    ),
  );
}

export function revokeKey(key_id: string, label: string) {
  return settled(
    act(
      "Revoking the key",
      () => send("DELETE /v1/keys/{key_id}", { params: { key_id } }),
      () => ({ text: `The key “${label}” opens nothing any more.` }),
    ),
  );
}
