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

/** Why the one signed in cannot do such a thing, as a sentence for the button; undefined where they can. */
export function useWhyNot(permission: keyof typeof DOES): string | undefined {
  const me = useMe().data;
  if (!me || me.permissions.includes(permission)) return undefined;
  return `Your role (${me.role}) may read, not ${DOES[permission]}.`;
}

/** The user list is an admin's; everybody else sees ids, shortened by whoever shows them. */
export function useNames(): (id: string | null | undefined) => string {
  const me = useMe().data;
  const users = useAnswer("/v1/users", undefined, { enabled: me?.permissions.includes("admin") ?? false });
  return (id) => {
    if (!id) return "somebody";
    if (id === me?.user_id) return "you";
    const user = users.data?.items.find((one) => one.user_id === id);
    if (user) return user.display_name || user.name;
    return id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-5)}` : id;
  };
}
