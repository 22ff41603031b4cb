// Saved views: an address with a name, one's own or shared. The gateway keeps a text; one that begins with `/`
// is a page of the windows, any other is a question to search.
import { useLocation, useNavigate } from "@tanstack/react-router";
import { say } from "~/acts/toasts";
import { type Problem, send } from "~/api/client";
import { askAgain, useAnswer } from "~/api/questions";
import type { ViewItem } from "~/protocol/openapi";
import type { Offer } from "./offers";
import { show } from "./overlays";

/** The address as it is kept: without `peek`'s neighbours lost, and never a foreign host. */
export function pageOf(query: string): string | null {
  return query.startsWith("/") && !query.startsWith("//") ? query : null;
}

export function useViewList(enabled = true) {
  return useAnswer("/v1/views", undefined, { enabled });
}

export function useOpenView(): (view: ViewItem) => void {
  const navigate = useNavigate();
  return (view) => {
    const page = pageOf(view.query);
    if (page) void navigate({ href: page });
    else show({ kind: "palette", mode: "search", text: view.query });
  };
}

export function useSavedViews(enabled: boolean): Offer[] {
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

/** Whether it was kept; a refusal is the gateway's sentence. */
export async function saveView(name: string, query: string, shared: boolean): Promise<string | null> {
  try {
    await send("POST /v1/views", { body: { name, query, shared } });
    say({ tone: "good", text: `“${name}” is kept among your saved views.` });
    askAgain("/v1/views");
    return null;
  } catch (error) {
    return (error as Problem).message;
  }
}

export async function removeView(view: ViewItem): Promise<void> {
  try {
    await send("DELETE /v1/views/{view_id}", { params: { view_id: view.view_id } });
    say({
      tone: "good",
      text: `“${view.name}” is removed.`,
      undo: () => saveView(view.name, view.query, view.shared),
    });
  } catch (error) {
    say({ tone: "alert", text: `“${view.name}” was not removed: ${(error as Error).message}` });
  }
  askAgain("/v1/views");
}

export function useHere(): string {
  return useLocation({ select: (location) => location.pathname + location.searchStr });
}
