// Display names of users: "you" for oneself, a name if it may be known, else the id.
import { useApi } from "~/api/queries";

export function useMe() {
  return useApi("/v1/whoami", undefined, { every: 30_000 });
}

export function useMay(permission: string): boolean {
  return useMe().data?.permissions.includes(permission) ?? false;
}

const DOES = {
  operate: "command agents",
  approve: "decide",
  verify: "verify",
  export: "export",
  admin: "administer",
} as const;

const OPERATOR = "An operator's sign-in link comes from: observatory login";
const ADMIN = "An admin's sign-in link comes from: observatory login --user admin";
const LINKS = {
  operate: OPERATOR,
  approve: OPERATOR,
  verify: OPERATOR,
  export: ADMIN,
  admin: ADMIN,
} as const;

/** Why the user lacks a permission, as a tooltip for the button; undefined if permitted. */
export function useWhyNot(permission: keyof typeof DOES): string | undefined {
  const me = useMe().data;
  if (!me || me.permissions.includes(permission)) return undefined;
  return `Your role (${me.role}) can read but not ${DOES[permission]}. ${LINKS[permission]}`;
}

/** Names are visible to every reader; an unknown user is a shortened id. */
export function useNames(): (id: string | null | undefined) => string {
  const me = useMe().data;
  const people = useApi("/v1/people", undefined, { every: 60_000, keep: true });
  return (id) => {
    if (!id) return "unknown";
    if (id === me?.user_id) return "you";
    const found = people.data?.items.find((one) => one.user_id === id);
    if (found) return found.name;
    return id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-5)}` : id;
  };
}
