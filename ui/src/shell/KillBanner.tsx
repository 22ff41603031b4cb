// While a kill-switch is on, everybody sees it on every view: what is stopped, since when, by whom, why.
import { Link } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import type { KillSwitchItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { useNames } from "~/widgets/people";
import classes from "./KillBanner.module.css";

/** The switches that hold something now; armed ones rule nothing yet (ruling 26). */
export function useStops(): KillSwitchItem[] {
  const asked = useAnswer("/v1/kill-switch", undefined, { every: 2_000 });
  return (asked.data?.items ?? []).filter((one) => one.state === "engaged" || one.state === "releasing");
}

export function whatStops({ scope, target }: Pick<KillSwitchItem, "scope" | "target">): string {
  if (scope === "global") return "everything in this tenant";
  return scope === "class" ? `every agent of type ${target}` : `${scope} ${target}`;
}

export function KillBanner({ stops }: { stops: KillSwitchItem[] }) {
  const name = useNames();
  if (stops.length === 0) return null;
  return (
    <section className={classes.banner} aria-label="Kill-switch">
      {stops.map((stop) => (
        <p key={stop.kill_id}>
          {/* Without the age: an alert that counts seconds would be read out every second. */}
          <span role="alert">
            <strong>
              {stop.state === "releasing" ? "Kill-switch is being released:" : "Kill-switch is on:"}
            </strong>{" "}
            {whatStops(stop)}
          </span>
          {stop.state === "releasing" ? " goes on in stages. It was stopped " : " was stopped "}
          <Ago at={stop.engaged_at ?? stop.created_at} /> by {name(stop.requested_by)} (“{stop.reason}”).{" "}
          {stop.held.toLocaleString("en")} {stop.held === 1 ? "message is" : "messages are"} held, none is
          lost.
        </p>
      ))}
      <Link to="/god-mode" search={{ kill: stops[0]?.kill_id } as never}>
        {stops.some(({ state }) => state === "engaged") ? "Release it in God Mode" : "God Mode"}
      </Link>
    </section>
  );
}
