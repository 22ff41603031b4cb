// The alerts tray: a bell with the number of new alerts since it was last opened, and rows with their age, a
// link, and Pause and inspect for an agent in a session.
import { Button, Popover } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { pause } from "~/commands/session";
import type { AlertNotice } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Empty, Loaded } from "~/widgets/Panel";
import { useMay } from "~/widgets/users";
import classes from "./Alerts.module.css";
import { linesOf, whereOf } from "./alertLines";
import { Icon } from "./Icon";

const SIGNS: Record<AlertNotice["kind"], { mark: string; tone: string; word: string }> = {
  entropy: { mark: "⟲", tone: "alert", word: "entropy" },
  loop: { mark: "⟲", tone: "alert", word: "loop" },
  injection: { mark: "!", tone: "blocked", word: "prompt injection" },
  violation: { mark: "!", tone: "violation", word: "schema violation" },
  budget_warning: { mark: "$", tone: "blocked", word: "budget warning" },
  budget_exceeded: { mark: "$", tone: "alert", word: "budget exceeded" },
  status_alert: { mark: "i", tone: "active", word: "status alert" },
  eviction: { mark: "×", tone: "dead", word: "evicted" },
  kill_switch: { mark: "■", tone: "alert", word: "kill switch" },
  rule: { mark: "◎", tone: "alert", word: "rule" },
};

export function Alerts() {
  const [open, setOpen] = useState(false);
  const query = useApi("/v1/alerts", { limit: 50 }, { every: 3_000 });
  const [seen, setSeen] = useLocalStorage({ key: "observatory:alerts-seen", defaultValue: "" });
  const items = query.data?.items ?? [];
  const fresh = items.filter((alert) => alert.at > seen).length;
  const count = fresh >= 50 ? "50+" : String(fresh);
  const toggle = () => {
    // Seen: everything that existed when the tray was opened, by the gateway's clock.
    if (!open && items[0]) setSeen(items[0].at);
    setOpen(!open);
  };
  return (
    <Popover
      opened={open}
      onChange={setOpen}
      position="bottom-end"
      width={420}
      shadow="md"
      trapFocus
      returnFocus
    >
      <Popover.Target>
        <button
          type="button"
          className={classes.bell}
          onClick={toggle}
          aria-label={`Alerts, ${fresh === 0 ? "none" : count} new`}
          data-fresh={fresh > 0 || undefined}
        >
          <Icon name="bell" />
          {fresh > 0 && <span className={classes.count}>{count}</span>}
        </button>
      </Popover.Target>
      <Popover.Dropdown className={classes.tray} aria-label="Alerts">
        <Loaded query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty command="observatory demo --incident loop">
                No alerts. Loops, violations, budgets, status alerts and evictions appear here. To see one:
              </Empty>
            ) : (
              <ul className={classes.list}>
                {linesOf(items).map(({ name, alert, times }) => (
                  <Row key={name} alert={alert} times={times} leave={() => setOpen(false)} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </Popover.Dropdown>
    </Popover>
  );
}

function Row({ alert, times, leave }: { alert: AlertNotice; times: number; leave: () => void }) {
  const navigate = useNavigate();
  const operates = useMay("operate");
  const sign = SIGNS[alert.kind];
  const href = whereOf(alert);
  const { session_id, agent_id } = alert;
  const inspect = async () => {
    if (!session_id || !agent_id) return;
    leave();
    await pause(session_id, agent_id, alert.text.slice(0, 500));
    void navigate({ href });
  };
  return (
    <li className={classes.row} data-open={alert.open || undefined}>
      <span className={classes.mark} data-tone={sign.tone} title={sign.word}>
        <span aria-hidden>{sign.mark}</span>
        <span className="unseen">{sign.word}: </span>
      </span>
      <div>
        <Link to={href} onClick={leave} className={classes.text}>
          {alert.text}
        </Link>
        <div className={classes.foot}>
          <Ago at={alert.at} />
          {times > 1 && <span>{times} times lately</span>}
          {alert.open && <span>still firing</span>}
          {operates && session_id && agent_id && alert.open && (
            <Button size="compact-xs" variant="default" onClick={() => void inspect()}>
              Pause and inspect
            </Button>
          )}
        </div>
      </div>
    </li>
  );
}
