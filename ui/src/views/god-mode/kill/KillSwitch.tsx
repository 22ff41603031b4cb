// The kill-switch: what is stopped, who has obeyed, how it goes on, and how to stop something. The gateway asks
// for two confirmations, one after the other; here each is typed.
import { useAnswer } from "~/api/questions";
import type { KillSwitchItem } from "~/protocol/openapi";
import { Shown } from "~/widgets/Panel";
import classes from "../God.module.css";
import { Past } from "./Past";
import { Stopped } from "./Stopped";
import { Throw } from "./Throw";
import { headline } from "./throwing";

const rules = ({ state }: KillSwitchItem) => state === "engaged" || state === "releasing";

export function KillSwitch() {
  const asked = useAnswer("/v1/kill-switch", undefined, { every: 2_000, keep: true });
  return (
    <section
      className={classes.lever}
      data-lever="kill"
      id="kill"
      aria-label="Stop and release"
      tabIndex={-1}
    >
      <Shown asked={asked} rows={8}>
        {({ items }) => {
          const now = items.filter(rules);
          const line = headline(items);
          const said = line.charAt(0).toUpperCase() + line.slice(1);
          return (
            <>
              <header className={classes.leverHead}>
                <h2>Kill-switch</h2>
                <p className={classes.headline} data-on={now.length > 0 || undefined} role="status">
                  <span aria-hidden>{now.length > 0 ? "■" : "▸"}</span> {said}
                </p>
              </header>
              {now.map((one) => (
                <Stopped key={one.kill_id} one={one} />
              ))}
              <Throw items={items} isOn={now.length > 0} />
              <Past items={items.filter((one) => !rules(one))} />
            </>
          );
        }}
      </Shown>
    </section>
  );
}
