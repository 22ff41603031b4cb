// Saved views: an address with a name, private or shared. The gateway stores a text; one that begins with `/`
// is a page of this UI, any other is a search query.
import { useLocation, useNavigate } from "@tanstack/react-router";
import { type Problem, send } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { showToast } from "~/commands/toasts";
import type { ViewItem } from "~/protocol/openapi";
import { show } from "./overlays";
import type { PaletteItem } from "./paletteItems";

/** The address as it is stored, and never on a foreign host. */
export function pageOf(query: string): string | null {
  return query.startsWith("/") && !query.startsWith("//") ? query : null;
}

export function useViewList(enabled = true) {
  return useApi("/v1/views", undefined, { enabled });
}

export function useOpenView(): (view: ViewItem) => void {
  const navigate = useNavigate();
  return (view) => {
    const page = pageOf(view.query);
    if (page) void navigate({ href: page });
    else show({ kind: "palette", mode: "search", text: view.query });
  };
}

export function useSavedViews(enabled: boolean): PaletteItem[] {
  const list = useViewList(enabled);
  const open = useOpenView();
  return (list.data?.items ?? []).map((view) => ({
    id: view.view_id,
    text: view.name,
    more: view.shared ? (view.mine ? "shared by you" : "shared") : undefined,
    stays: pageOf(view.query) === null,
    run: () => open(view),
  }));
}

/** Whether it was saved; a refusal shows the gateway's sentence. */
export async function saveView(name: string, query: string, shared: boolean): Promise<string | null> {
  try {
    await send("POST /v1/views", { body: { name, query, shared } });
    showToast({ tone: "good", text: `View “${name}” saved.` });
    refetch("/v1/views");
    return null;
  } catch (error) {
    return (error as Problem).message;
  }
}

export async function removeView(view: ViewItem): Promise<void> {
  try {
    await send("DELETE /v1/views/{view_id}", { params: { view_id: view.view_id } });
    showToast({
      tone: "good",
      text: `“${view.name}” is removed.`,
      undo: () => saveView(view.name, view.query, view.shared),
    });
  } catch (error) {
    showToast({ tone: "alert", text: `“${view.name}” was not removed: ${(error as Error).message}` });
  }
  refetch("/v1/views");
}

export function useHere(): string {
  return useLocation({ select: (location) => location.pathname + location.searchStr });
}
