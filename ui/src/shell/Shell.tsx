// The frame around every view (ui.md): rail, top bar, the view, the panel at the right. It owns Esc and the
// keys 1–6, and shows the sign-in page instead of everything while nobody is signed in.
import { Outlet, useLocation, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "~/api/client";
import { askAgain, questions } from "~/api/questions";
import { useConnection } from "~/live/useLive";
import { belongTo } from "~/widgets/drafts";
import { Guarded } from "~/widgets/Guarded";
import { useMe } from "~/widgets/people";
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

/** Whoever is refused anywhere may be signed out: ask who one is, and let the answer decide. */
function useSignOutNoticed(): void {
  const connection = useConnection();
  useEffect(() => {
    if (connection === "refused") askAgain(WHO);
  }, [connection]);
  useEffect(
    () =>
      questions.getQueryCache().subscribe(({ type, query }) => {
        const { error } = query.state;
        if (type !== "updated" || query.queryKey[0] === WHO || query.state.status !== "error") return;
        if (error instanceof Problem && error.code === 401) askAgain(WHO);
      }),
    [],
  );
}

/** Every view's code is fetched once the first one stands: keys 1–6 must work with the gateway away. */
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
    const again = setInterval(() => askAgain(WHO), 2_000);
    return () => clearInterval(again);
  }, [away]);
  const code = me.error?.code;
  if (code === 401 || code === 403) return <SignIn />;
  if (me.data) {
    const who = `${me.data.tenant_id} ${me.data.user_id ?? me.data.role}`;
    // Before anything of the page is drawn for them.
    belongTo(who);
    return <Frame key={who} />;
  }
  if (me.error) return <Away detail={me.error.message} />;
  return <output className={classes.wait}>Asking the gateway…</output>;
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
      {/* A button, not an anchor: the address is the page's state, a place in the page is none. */}
      <button type="button" className={classes.skip} onClick={() => document.getElementById("view")?.focus()}>
        Skip to the view
      </button>
      <Guarded of="The kill-switch banner">
        <KillBanner stops={stops} />
      </Guarded>
      <Guarded of="The list of views">
        <Rail />
      </Guarded>
      <Guarded of="The top bar">
        <TopBar />
      </Guarded>
      <main id="view" className={classes.view} tabIndex={-1}>
        <Guarded of="This view" about={path} loaded>
          <Outlet />
        </Guarded>
      </main>
      <Guarded of="The panel">
        <PeekPanel />
      </Guarded>
      <Guarded of="The tour">
        <Tour />
      </Guarded>
      <Guarded of="Notices">
        <Toasts />
      </Guarded>
      <Guarded of="The palette">
        <Palette />
      </Guarded>
      <Help opened={overlay?.kind === "help"} />
      <SaveView opened={overlay?.kind === "save"} />
    </div>
  );
}
