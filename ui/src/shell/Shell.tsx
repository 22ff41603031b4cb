// The frame around every view (ui.md): rail, top bar, the view, the side panel. It owns Esc and the keys 1–6,
// and shows the sign-in page while the user is signed out.
import { Outlet, useLocation, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "~/api/client";
import { questions, refetch } from "~/api/queries";
import { useConnection } from "~/live/useLive";
import { belongTo } from "~/widgets/drafts";
import { ErrorBoundary } from "~/widgets/ErrorBoundary";
import { useMe } from "~/widgets/users";
import { Help } from "./Help";
import { KillBanner, useStops } from "./KillBanner";
import { show, useOverlay } from "./overlays";
import { Palette } from "./Palette";
import { PeekPanel } from "./PeekPanel";
import { Rail } from "./Rail";
import { SaveView } from "./SaveView";
import classes from "./Shell.module.css";
import { Away, SignIn } from "./SignIn";
import { Toasts } from "./Toasts";
import { TopBar } from "./TopBar";
import { Tour } from "./Tour";
import { useFrameKeys } from "./useFrameKeys";
import { VIEWS } from "./views";

const WHO = "/v1/whoami";

/**
 * A 401 from any request may mean that the user is signed out: refetch the identity and let its response
 * decide.
 */
function useSignOutNoticed(): void {
  const connection = useConnection();
  useEffect(() => {
    if (connection === "refused") refetch(WHO);
  }, [connection]);
  useEffect(
    () =>
      questions.getQueryCache().subscribe(({ type, query }) => {
        const { error } = query.state;
        if (type !== "updated" || query.queryKey[0] === WHO || query.state.status !== "error") return;
        if (error instanceof Problem && error.code === 401) refetch(WHO);
      }),
    [],
  );
}

/**
 * Every view's code is prefetched once the first one is shown: keys 1–6 must work while the gateway is
 * unreachable.
 */
function useViewsAtHand(): void {
  const router = useRouter();
  useEffect(() => {
    const fetched = setTimeout(() => {
      for (const to of [...VIEWS.map((view) => view.to), "/inbox", "/settings"])
        router.preloadRoute({ to } as never).catch(() => undefined);
    }, 1_500);
    return () => clearTimeout(fetched);
  }, [router]);
}

export function Shell() {
  const me = useMe();
  useSignOutNoticed();
  const away = me.data === undefined && me.error?.code === 0;
  useEffect(() => {
    if (!away) return;
    const again = setInterval(() => refetch(WHO), 2_000);
    return () => clearInterval(again);
  }, [away]);
  const code = me.error?.code;
  if (code === 401 || code === 403) return <SignIn />;
  if (me.data) {
    const who = `${me.data.tenant_id} ${me.data.user_id ?? me.data.role}`;
    // Before anything of the page is drawn for this user.
    belongTo(who);
    return <Frame key={who} />;
  }
  if (me.error) return <Away detail={me.error.message} />;
  return <output className={classes.wait}>Connecting to the gateway…</output>;
}

function Frame() {
  const overlay = useOverlay();
  const stops = useStops();
  const path = useLocation({ select: (location) => location.pathname });
  useFrameKeys();
  useViewsAtHand();
  useEffect(() => {
    const view =
      VIEWS.find(({ to }) => path.startsWith(to))?.whole ??
      (path.startsWith("/settings") ? "Settings" : path === "/inbox" ? "Inbox" : "Compare");
    document.title = `${view} · Observatory`;
  }, [path]);
  if (overlay?.kind === "enter") return <SignIn tenant={overlay.tenant} leave={() => show(null)} />;
  return (
    <div className={classes.frame} data-hazard={stops.length > 0 || undefined}>
      {/* A button, not an anchor: the address is the page's state, and a position in the page is not. */}
      <button type="button" className={classes.skip} onClick={() => document.getElementById("view")?.focus()}>
        Skip to the view
      </button>
      <ErrorBoundary of="The kill switch banner">
        <KillBanner stops={stops} />
      </ErrorBoundary>
      <ErrorBoundary of="The list of views">
        <Rail />
      </ErrorBoundary>
      <ErrorBoundary of="The top bar">
        <TopBar />
      </ErrorBoundary>
      <main id="view" className={classes.view} tabIndex={-1}>
        <ErrorBoundary of="This view" about={path} loaded>
          <Outlet />
        </ErrorBoundary>
      </main>
      <ErrorBoundary of="The panel">
        <PeekPanel />
      </ErrorBoundary>
      <ErrorBoundary of="The tour">
        <Tour />
      </ErrorBoundary>
      <ErrorBoundary of="Notices">
        <Toasts />
      </ErrorBoundary>
      <ErrorBoundary of="The palette">
        <Palette />
      </ErrorBoundary>
      <Help opened={overlay?.kind === "help"} />
      <SaveView opened={overlay?.kind === "save"} />
    </div>
  );
}
