// Who somebody is, in the words of the page: "you" for oneself, a name where it may be known, else the id.
import { useAnswer } from "~/api/questions";

export function useMe() {
  return useAnswer("/v1/whoami", undefined, { every: 30_000 });
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

/** Why the one signed in cannot do such a thing, as a sentence for the button; undefined where they can. */
export function useWhyNot(permission: keyof typeof DOES): string | undefined {
  const me = useMe().data;
  if (!me || me.permissions.includes(permission)) return undefined;
  return `Your role (${me.role}) may read, not ${DOES[permission]}. ${LINKS[permission]}`;
}

/** Names are for everybody who reads; whom nobody knows any more is an id, shortened. */
export function useNames(): (id: string | null | undefined) => string {
  const me = useMe().data;
  const people = useAnswer("/v1/people", undefined, { every: 60_000, keep: true });
  return (id) => {
    if (!id) return "somebody";
    if (id === me?.user_id) return "you";
    const found = people.data?.items.find((one) => one.user_id === id);
    if (found) return found.name;
    return id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-5)}` : id;
  };
}
