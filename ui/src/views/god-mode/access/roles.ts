// Role permissions, as the gateway grants them (S58); a browser test compares the two. And how users and keys
// read. Pure.
import type { KeyItem, UserItem } from "~/protocol/openapi";

export const PERMISSIONS = ["read", "verify", "export", "approve", "operate", "send", "admin"] as const;
export type Permission = (typeof PERMISSIONS)[number];
export const MEANS: Record<Permission, string> = {
  read: "read everything of the tenant",
  verify: "verify the audit trail",
  export: "export the audit trail",
  approve: "answer gates and decisions",
  operate: "command agents; rules, routes, budgets, jobs",
  send: "send messages in their own name",
  admin: "kill switch, instructions, users, keys, settings",
};
export const ROLES = {
  viewer: ["read"],
  auditor: ["read", "verify", "export"],
  approver: ["read", "approve", "send"],
  operator: ["read", "verify", "approve", "operate", "send"],
  admin: ["read", "verify", "export", "approve", "operate", "send", "admin"],
  agent: ["send"],
} as const satisfies Record<string, readonly Permission[]>;
export type Role = keyof typeof ROLES;
export const PEOPLE = ["viewer", "auditor", "approver", "operator", "admin"] as const;

export function may(role: string, permission: Permission): boolean {
  return (ROLES[role as Role] as readonly Permission[] | undefined)?.includes(permission) ?? false;
}

/** The permissions a user loses and gains with another role. */
export function difference(from: string, to: string): string {
  const lost = PERMISSIONS.filter((one) => may(from, one) && !may(to, one));
  const gained = PERMISSIONS.filter((one) => !may(from, one) && may(to, one));
  const parts = [
    gained.length > 0 ? `adds: ${gained.map((one) => MEANS[one]).join("; ")}` : "",
    lost.length > 0 ? `removes: ${lost.map((one) => MEANS[one]).join("; ")}` : "",
  ].filter(Boolean);
  return parts.length > 0 ? `${parts.join(". And ")}.` : "no change of permissions.";
}

export type KeyStatus = { word: string; tone: string; ended: boolean };

export function keyStanding(key: KeyItem, users: readonly UserItem[], nowMs: number): KeyStatus {
  if (key.revoked_at) return { word: "× revoked", tone: "idle", ended: true };
  if (key.expires_at && Date.parse(key.expires_at) <= nowMs)
    return { word: "· expired", tone: "idle", ended: true };
  if (key.user_id && users.find((one) => one.user_id === key.user_id)?.disabled_at)
    return { word: "× user disabled", tone: "idle", ended: true };
  return { word: "✓ active", tone: "good", ended: false };
}

/** Active ones first, then the newest. */
export function ordered<T extends { created_at: string }>(
  items: readonly T[],
  ended: (one: T) => boolean,
): T[] {
  return [...items].sort(
    (a, b) => Number(ended(a)) - Number(ended(b)) || b.created_at.localeCompare(a.created_at),
  );
}

/** A date field's `2026-12-01T10:30`, in the viewer's zone, as the gateway expects it; null for none. */
export function expiryOf(text: string): string | null {
  const ms = Date.parse(text);
  return text === "" || Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
