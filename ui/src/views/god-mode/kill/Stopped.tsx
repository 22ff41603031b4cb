// A kill-switch in force: who has obeyed, who has not, what it holds, and the way out of it.
import { useEffect, useRef, useState } from "react";
import { useAnswer } from "~/api/questions";
import type { KillSwitchItem, KillSwitchStanding } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Shown } from "~/widgets/Panel";
import { useNames } from "~/widgets/people";
import classes from "../God.module.css";
import { EventLink } from "../Trail";
import { Bar } from "./Bar";
import { Release } from "./Release";
import { whatOf } from "./throwing";

export function Stopped({ one }: { one: KillSwitchItem }) {
  const [url] = useUrl();
  const names = useNames();
  const box = useRef<HTMLElement>(null);
  const isMeant = url.kill === one.kill_id;
  const asked = useAnswer("/v1/kill-switch/{kill_id}", undefined, {
    params: { kill_id: one.kill_id },
    every: 2_000,
    keep: true,
  });
  useEffect(() => {
    if (isMeant) box.current?.scrollIntoView({ block: "nearest" });
  }, [isMeant]);
  const what = whatOf({ scope: one.scope, target: one.target ?? "" });
  return (
    <article
      className={classes.stopped}
      ref={box}
      aria-label={`Kill-switch for ${what}`}
      data-state={one.state}
    >
      <h3>
        {one.state === "releasing" ? "Goes on in stages: " : "Stopped: "}
        {what}
      </h3>
      <p>
        <Ago at={one.engaged_at} /> by {names(one.requested_by)}: “{one.reason}”{" "}
        {asked.data?.event_id && <EventLink id={asked.data.event_id} />}
      </p>
      <Shown asked={asked} rows={3}>
        {(standing) => <Obeyed standing={standing} />}
      </Shown>
      {one.state === "engaged" && <Release one={one} startsOpen={isMeant} />}
    </article>
  );
}

function Obeyed({ standing }: { standing: KillSwitchStanding }) {
  const { gateways, told, acknowledged, later, unheard, held, state } = standing;
  const [most, setMost] = useState(held);
  if (held > most) setMost(held);
  const obey = gateways.filter((one) => one.has_obeyed).length;
  if (state === "releasing")
    return (
      <Bar
        label="Held messages sent on"
        done={most - held}
        of={most}
        says={`${held.toLocaleString("en")} held ${held === 1 ? "message waits" : "messages wait"}; they go oldest first`}
      />
    );
  return (
    <>
      <Bar
        label="Gateways that obey"
        done={obey}
        of={gateways.length}
        says={`${obey} of ${gateways.length} ${gateways.length === 1 ? "gateway obeys" : "gateways obey"}`}
      />
      {gateways
        .filter((one) => !one.has_obeyed)
        .map((one) => (
          <p key={one.name} className={classes.note}>
            ! {one.name} was last in touch <Ago at={one.last_tick_at} />. A gateway that cannot reach the
            database accepts nothing.
          </p>
        ))}
      <Bar
        label="Agents that said they stopped"
        done={acknowledged}
        of={told}
        says={`${acknowledged} of ${told} ${told === 1 ? "agent" : "agents"} said that they stopped`}
      />
      {unheard.length > 0 && (
        <details className={classes.unheard}>
          <summary>
            {told - acknowledged} {told - acknowledged === 1 ? "has" : "have"} not; what they send is held all
            the same
          </summary>
          <ul>
            {unheard.map((one) => (
              <li key={one.agent_id}>
                <code>{one.agent_id}</code>{" "}
                <span className={classes.faint}>
                  {one.is_evicted ? "evicted" : one.last_seen_at ? "last heard " : "never heard"}
                  {!one.is_evicted && one.last_seen_at && <Ago at={one.last_seen_at} />}
                </span>
              </li>
            ))}
          </ul>
          {told - acknowledged > unheard.length && (
            <p className={classes.faint}>and {told - acknowledged - unheard.length} more</p>
          )}
        </details>
      )}
      {later > 0 && (
        <p className={classes.faint}>
          {later} {later === 1 ? "agent" : "agents"} came into its scope later: told so when they connect.
        </p>
      )}
      <p>
        <b className={classes.figure}>{held.toLocaleString("en")}</b>{" "}
        {held === 1 ? "message is" : "messages are"} held, none is lost.
      </p>
    </>
  );
}
