// Global keys: 1–6 open the views; Esc closes the panel, then leaves the drill-down, then returns to Fleet
// Command (ruling 40).
import { useLocation, useNavigate } from "@tanstack/react-router";
import { type KeyMap, useKeys } from "./keys";
import { show } from "./overlays";
import { usePeek } from "./peek";
import { VIEWS } from "./views";

/** Where Esc leads from a path when no panel is open; null if nowhere. */
export function outOf(path: string): "/fleet" | "/sessions" | "/registry" | "/forensics" | null {
  if (path.startsWith("/registry/")) return "/registry";
  if (path.startsWith("/forensics/")) return "/forensics";
  if (path.startsWith("/sessions/") || path === "/compare") return "/sessions";
  return path === "/fleet" ? null : "/fleet";
}

export function useFrameKeys(): void {
  const navigate = useNavigate();
  const path = useLocation({ select: (location) => location.pathname });
  const { text, close } = usePeek();
  const views: KeyMap = {};
  for (const { number, whole, to } of VIEWS) {
    views[String(number)] = { says: whole, run: () => void navigate({ to }) };
  }
  useKeys(views, "Views", true);
  const map: KeyMap = {};
  map.Escape = {
    says: "Close the panel, then the drill-down, then back to Fleet Command",
    run: () => {
      const out = outOf(path);
      if (text) close();
      else if (out) void navigate({ to: out });
    },
  };
  map["mod+k"] = { says: "Search or run a command", run: () => show({ kind: "palette", mode: "all" }) };
  map["/"] = { says: "Search messages", run: () => show({ kind: "palette", mode: "search" }) };
  map[","] = { says: "Settings", run: () => void navigate({ to: "/settings" }) };
  map["?"] = { says: "Keyboard shortcuts", run: () => show({ kind: "help" }) };
  useKeys(map, "Everywhere", true);
}
