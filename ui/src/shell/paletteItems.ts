// The palette's entries: pages, agents, sessions, steps, actions, saved views. Each entry knows its action;
// the palette only lists, filters and runs them.
import { useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { pauseEverywhere } from "~/commands/agents";
import { showToast } from "~/commands/toasts";
import { plural } from "~/plural";
import type { SearchAnswer, SessionItem } from "~/protocol/openapi";
import { useMay } from "~/widgets/users";
import { ranked } from "./fuzzy";
import { show } from "./overlays";
import { useSavedViews } from "./saved";
import { signOut } from "./signOut";
import { startTour } from "./tour";
import { VIEWS } from "./views";

export interface PaletteItem {
  id: string;
  text: string;
  more?: string;
  key?: string;
  run: () => void;
  /** The palette stays open: the entry leads further into it. */
  stays?: boolean;
}
export interface Offers {
  group: string;
  offers: PaletteItem[];
}
export type Mode = "all" | "search" | "pause";

/** Search terms that users would type. */
const SETTINGS = [
  ["channels", "channels, Slack, e-mail, outbound webhooks"],
  ["exporters", "exporters, OTLP"],
  ["hooks", "inbound webhooks"],
  ["telemetry", "OTLP ingest, telemetry from agents"],
  ["redaction", "redaction"],
  ["retention", "retention, shredding"],
  ["peers", "federation, peers, witnesses"],
  ["detectors", "detectors, loop and entropy thresholds"],
  ["regions", "regions of clusters"],
  ["you", "appearance, theme, saved views"],
] as const;

const FEW = 5;
const MANY = 8;

export function usePaletteItems(
  typed: string,
  mode: Mode,
  open: boolean,
): { groups: Offers[]; busy: boolean } {
  const navigate = useNavigate();
  const may = { operate: useMay("operate") };
  const [asked] = useDebouncedValue(typed.trim(), 180);
  const agents = useApi("/v1/agents", undefined, { enabled: open });
  const sessions = useApi("/v1/sessions", { limit: 200 }, { enabled: open && mode !== "pause" });
  const searching = open && mode !== "pause" && asked.length >= 2;
  const steps = useApi("/v1/search", { q: asked, limit: MANY }, { enabled: searching, keep: true });
  const actions = useActions(may.operate);
  const views = useSavedViews(open);
  const go = (href: string) => void navigate({ href });

  const agentOffers = (run: (agent_id: string) => void, most: number) =>
    ranked(typed, agents.data?.items ?? [], (one) => `${one.agent_id} ${one.agent_type ?? ""}`, most).map(
      (one): PaletteItem => ({
        id: `agent:${one.agent_id}`,
        text: one.agent_id,
        more: [one.agent_type, one.state === "idle" ? null : one.state.replace("_", " ")]
          .filter(Boolean)
          .join(" · "),
        run: () => run(one.agent_id),
      }),
    );
  if (mode === "pause") {
    const pausing = agentOffers((agent_id) => void pauseEverywhere(agent_id), 12);
    return { groups: [{ group: "Pause which agent?", offers: pausing }], busy: agents.isFetching };
  }
  const groups: Offers[] = [];
  const add = (group: string, offers: PaletteItem[]) => {
    if (offers.length > 0) groups.push({ group, offers });
  };
  const places: PaletteItem[] = [
    ...VIEWS.map(({ whole, to, number }) => ({
      id: to,
      text: whole,
      key: String(number),
      run: () => go(to),
    })),
    { id: "/inbox", text: "Approvals inbox", run: () => go("/inbox") },
    { id: "/compare", text: "Compare two sessions", run: () => go("/compare") },
    { id: "/settings", text: "Settings: alert rules", key: ",", run: () => go("/settings") },
    ...SETTINGS.map(([section, text]) => ({
      id: section,
      text: `Settings: ${text}`,
      run: () => go(`/settings/${section}`),
    })),
  ];
  const some = typed.trim() !== "";
  const stepItems = searching ? stepOffers(steps.data as SearchAnswer | undefined, go) : [];
  if (mode === "search") add("Steps", stepItems);
  if (mode === "all")
    add(
      "Go to",
      ranked(typed, places, (one) => one.text, some ? FEW : 8),
    );
  add(
    "Agents",
    agentOffers((agent_id) => go(`/fleet?peek=${encodeURIComponent(`agent:${agent_id}`)}`), some ? MANY : 3),
  );
  add(
    "Sessions",
    ranked(typed, sessions.data?.items ?? [], named, some ? MANY : 3).map((one) => ({
      id: `session:${one.session_id}`,
      text: one.goal ?? one.session_id,
      more: `${one.status} · ${plural(one.agents_count, "agent")}`,
      run: () => go(`/sessions/${encodeURIComponent(one.session_id)}`),
    })),
  );
  if (mode === "all") {
    add(
      "Actions",
      ranked(typed, actions, (one) => one.text, some ? FEW : 8),
    );
    add(
      "Saved views",
      ranked(typed, views, (one) => one.text, FEW),
    );
  }
  return { groups, busy: searching && steps.isFetching };
}

function named(session: SessionItem): string {
  return `${session.goal ?? ""} ${session.session_id} ${session.agent_names.join(" ")}`;
}

function stepOffers(answer: SearchAnswer | undefined, go: (href: string) => void): PaletteItem[] {
  return (answer?.items ?? [])
    .filter((hit) => hit.session_id !== null)
    .map((hit) => ({
      id: `step:${hit.sequence_number}`,
      text: hit.snippet?.text ?? hit.tool ?? hit.message_type,
      more: [hit.agent_id, hit.tool].filter(Boolean).join(" · "),
      run: () =>
        go(`/sessions/${encodeURIComponent(hit.session_id ?? "")}?step=${encodeURIComponent(hit.step_id)}`),
    }));
}

function useActions(operates: boolean): PaletteItem[] {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const other = colorScheme === "dark" ? "light" : "dark";
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      showToast({ tone: "plain", text: "Link copied." });
    } catch {
      // Not a secure origin, or permission denied.
      showToast({
        tone: "alert",
        text: "The browser does not allow copying. The link is in the address bar.",
      });
    }
  };
  const pausing: PaletteItem = {
    id: "pause",
    text: "Pause an agent…",
    stays: true,
    run: () => show({ kind: "palette", mode: "pause" }),
  };
  return [
    ...(operates ? [pausing] : []),
    { id: "theme", text: `Switch to the ${other} theme`, run: () => setColorScheme(other) },
    { id: "copy", text: "Copy link to this page", run: () => void copy() },
    { id: "save", text: "Save this view…", stays: true, run: () => show({ kind: "save" }) },
    { id: "tour", text: "Start the tour", run: startTour },
    { id: "help", text: "Show keyboard shortcuts", key: "?", stays: true, run: () => show({ kind: "help" }) },
    { id: "out", text: "Sign out", run: () => void signOut() },
  ];
}
