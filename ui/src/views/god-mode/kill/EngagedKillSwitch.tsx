// An engaged kill switch: acknowledgements, held messages, and its release.
import { useEffect, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import { noun, plural } from "~/plural";
import type { KillSwitchItem, KillSwitchStatus } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Loaded } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import { EventLink } from "../AuditTrail";
import classes from "../God.module.css";
import { Bar } from "./Bar";
import { targetText } from "./engageSteps";
import { Release } from "./Release";

export function EngagedKillSwitch({ one }: { one: KillSwitchItem }) {
  const [url] = useUrl();
  const names = useNames();
  const box = useRef<HTMLElement>(null);
  const isMeant = url.kill === one.kill_id;
  const query = useApi("/v1/kill-switch/{kill_id}", undefined, {
    params: { kill_id: one.kill_id },
    every: 2_000,
    keep: true,
  });
  useEffect(() => {
    if (isMeant) box.current?.scrollIntoView({ block: "nearest" });
  }, [isMeant]);
  const what = targetText({ scope: one.scope, target: one.target ?? "" });
  return (
    <article
      className={classes.stopped}
      ref={box}
      aria-label={`Kill switch for ${what}`}
      data-state={one.state}
    >
      <h3>
        {one.state === "releasing" ? "Resuming in stages: " : "Stopped: "}
        {what}
      </h3>
      <p>
        <Ago at={one.engaged_at} /> by {names(one.requested_by)}: “{one.reason}”{" "}
        {query.data?.event_id && <EventLink id={query.data.event_id} />}
      </p>
      <Loaded query={query} rows={3}>
        {(standing) => <Obeyed standing={standing} />}
      </Loaded>
      {one.state === "engaged" && <Release one={one} startsOpen={isMeant} />}
    </article>
  );
}

function Obeyed({ standing }: { standing: KillSwitchStatus }) {
  const { gateways, told: notifiedCount, acknowledged, later, unheard, held, state } = standing;
  const [most, setMost] = useState(held);
  if (held > most) setMost(held);
  const obey = gateways.filter((one) => one.has_obeyed).length;
  if (state === "releasing")
    return (
      <Bar
        label="Held messages released"
        done={most - held}
        of={most}
        says={`${plural(held, "held message")} left; released oldest first`}
      />
    );
  return (
    <>
      <Bar
        label="Gateways enforcing"
        done={obey}
        of={gateways.length}
        says={`${obey}/${gateways.length} ${noun(gateways.length, "gateway")} enforcing`}
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
        label="Agents that acknowledged"
        done={acknowledged}
        of={notifiedCount}
        says={`${acknowledged} of ${plural(notifiedCount, "agent")} acknowledged`}
      />
      {unheard.length > 0 && (
        <details className={classes.unheard}>
          <summary>{notifiedCount - acknowledged} pending; their messages are held regardless</summary>
          <ul>
            {unheard.map((one) => (
              <li key={one.agent_id}>
                <code>{one.agent_id}</code>{" "}
                <span className={classes.faint}>
                  {one.is_evicted ? "evicted" : one.last_seen_at ? "last seen " : "never seen"}
                  {!one.is_evicted && one.last_seen_at && <Ago at={one.last_seen_at} />}
                </span>
              </li>
            ))}
          </ul>
          {notifiedCount - acknowledged > unheard.length && (
            <p className={classes.faint}>and {notifiedCount - acknowledged - unheard.length} more</p>
          )}
        </details>
      )}
      {later > 0 && (
        <p className={classes.faint}>
          {plural(later, "agent")} joined its scope later: notified when they connect.
        </p>
      )}
      <p>
        <b className={classes.figure}>{held.toLocaleString("en")}</b>{" "}
        {noun(held, "message is", "messages are")} held, none is lost.
      </p>
    </>
  );
}
