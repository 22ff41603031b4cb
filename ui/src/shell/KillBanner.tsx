// While a kill switch is engaged, every view shows what is stopped, since when, by whom and why.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { KillSwitchItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { useNames } from "~/widgets/users";
import classes from "./KillBanner.module.css";

/** The kill switches that hold something now; armed ones stop nothing yet (ruling 26). */
export function useStops(): KillSwitchItem[] {
  const query = useApi("/v1/kill-switch", undefined, { every: 2_000 });
  return (query.data?.items ?? []).filter((one) => one.state === "engaged" || one.state === "releasing");
}

export function whatStops({ scope, target }: Pick<KillSwitchItem, "scope" | "target">): string {
  if (scope === "global") return "everything in this tenant";
  return scope === "class" ? `every agent of type ${target}` : `${scope} ${target}`;
}

export function KillBanner({ stops }: { stops: KillSwitchItem[] }) {
  const name = useNames();
  if (stops.length === 0) return null;
  return (
    <section className={classes.banner} aria-label="Kill switch">
      {stops.map((stop) => (
        <p key={stop.kill_id}>
          {/* Without the age: a live region that counts seconds would be read out every second. */}
          <span role="alert">
            <strong>
              {stop.state === "releasing" ? "Kill switch is being released:" : "Kill switch engaged:"}
            </strong>{" "}
            {whatStops(stop)}
          </span>
          {stop.state === "releasing" ? " resumes in stages. It was stopped " : " was stopped "}
          <Ago at={stop.engaged_at ?? stop.created_at} /> by {name(stop.requested_by)} (“{stop.reason}”).{" "}
          {plural(stop.held, "message is", "messages are")} held, none is lost.
        </p>
      ))}
      <Link to="/god-mode" search={{ kill: stops[0]?.kill_id } as never}>
        {stops.some(({ state }) => state === "engaged") ? "Release it in God Mode" : "God Mode"}
      </Link>
    </section>
  );
}
