// The routes and the search parameters of every URL: view, selection (`peek`), filters, time. Views are
// chunks of their own. Every search parameter is text, validated here once; unknown ones are dropped.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";

/**
 * `peek` names what the side panel shows: `agent:NAME`, `edge:ID`, `session:ID`, `step:SESSION/STEP`,
 * `message:ID`.
 */
export interface Search {
  peek?: string;
  [member: string]: string | undefined;
}

function texts(raw: Record<string, unknown>): Search {
  const kept: Search = {};
  for (const [name, value] of Object.entries(raw)) {
    if (value !== undefined && value !== null && value !== "") kept[name] = String(value);
  }
  return kept;
}

const root = createRootRoute({ component: Shell, validateSearch: texts });
const at = <P extends string>(path: P, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load as never, name as never),
  });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: ({ search }) => {
    throw redirect({ to: "/fleet", search, replace: true });
  },
});
const fleet = at("/fleet", () => import("./views/fleet/Fleet"), "Fleet");
const sessions = at("/sessions", () => import("./views/sessions/Sessions"), "Sessions");
const session = at("/sessions/$sessionId", () => import("./views/sessions/Session"), "Session");
const compare = at("/compare", () => import("./views/sessions/Compare"), "Compare");
const registry = at("/registry", () => import("./views/registry/Registry"), "Registry");
const agent = at("/registry/$agentId", () => import("./views/registry/Agent"), "Agent");
const scheduler = at("/scheduler", () => import("./views/scheduler/Scheduler"), "Scheduler");
const forensics = at("/forensics", () => import("./views/forensics/Forensics"), "Forensics");
const forensicBoard = at("/forensics/$board", () => import("./views/forensics/Forensics"), "Forensics");
const message = at(
  "/forensics/message/$messageId",
  () => import("./views/forensics/message/Message"),
  "Message",
);
const godMode = at("/god-mode", () => import("./views/god-mode/GodMode"), "GodMode");
const settings = at("/settings", () => import("./views/settings/Settings"), "Settings");
const settingsSection = at("/settings/$section", () => import("./views/settings/Settings"), "Settings");
const inbox = at("/inbox", () => import("./views/inbox/Inbox"), "Inbox");

export const routeTree = root.addChildren([
  home,
  fleet,
  sessions,
  session,
  compare,
  registry,
  agent,
  scheduler,
  forensics,
  forensicBoard,
  message,
  godMode,
  settings,
  settingsSection,
  inbox,
]);

// Plain text in the address bar: `?peek=agent:writer-1`, no JSON quoting.
export const router = createRouter({
  routeTree,
  defaultPreload: "intent",
  defaultNotFoundComponent: NotFound,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(search))
      if (value !== undefined && value !== "") params.set(name, String(value));
    const text = params.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
    return text ? `?${text}` : "";
  },
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
