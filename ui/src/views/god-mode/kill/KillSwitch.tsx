// The kill switch: what is stopped, acknowledgements, release, and how to stop something. The gateway
// requires two confirmations, one after the other; here each is typed.
import { useApi } from "~/api/queries";
import type { KillSwitchItem } from "~/protocol/openapi";
import { Loaded } from "~/widgets/Panel";
import classes from "../God.module.css";
import { EngagedKillSwitch } from "./EngagedKillSwitch";
import { EngageKillSwitch } from "./EngageKillSwitch";
import { headline } from "./engageSteps";
import { PastKillSwitches } from "./PastKillSwitches";

const rules = ({ state }: KillSwitchItem) => state === "engaged" || state === "releasing";

export function KillSwitch() {
  const query = useApi("/v1/kill-switch", undefined, { every: 2_000, keep: true });
  return (
    <section
      className={classes.lever}
      data-lever="kill"
      id="kill"
      aria-label="Stop and release"
      tabIndex={-1}
    >
      <Loaded query={query} rows={8}>
        {({ items }) => {
          const now = items.filter(rules);
          const line = headline(items);
          const capitalised = line.charAt(0).toUpperCase() + line.slice(1);
          return (
            <>
              <header className={classes.leverHead}>
                <h2>Kill switch</h2>
                <p className={classes.headline} data-on={now.length > 0 || undefined} role="status">
                  <span aria-hidden>{now.length > 0 ? "■" : "▸"}</span> {capitalised}
                </p>
              </header>
              {now.map((one) => (
                <EngagedKillSwitch key={one.kill_id} one={one} />
              ))}
              <EngageKillSwitch items={items} isOn={now.length > 0} />
              <PastKillSwitches items={items.filter((one) => !rules(one))} />
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
