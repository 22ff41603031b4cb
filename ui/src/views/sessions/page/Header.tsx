// What the session is, how it is, what it costs, and what can be done about all of it at once.
import { Button, CopyButton, Menu } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { pause, unpause } from "~/acts/acts";
import type { SessionAnswer } from "~/protocol/openapi";
import { Ago, Id, Money } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useWhyNot } from "~/widgets/people";
import { STATUSES } from "~/widgets/status";
import { money } from "~/widgets/words";
import type { Graph } from "../dag/graph";
import classes from "./Page.module.css";

export function Header({ told, graph }: { told: SessionAnswer; graph: Graph }) {
  const { status } = told;
  const sign = STATUSES[status];
  const goal = told.goal ?? graph.steps.find((step) => step.intent)?.intent;
  return (
    <header className={classes.header}>
      <div className={classes.line}>
        <Tag tone={sign.tone}>
          <span aria-hidden>{sign.mark}</span> {status}
        </Tag>
        <h1 className={classes.goal} title={goal ?? undefined}>
          {goal ?? "Session"}
        </h1>
        <div className={classes.doing}>
          <Pausing told={told} />
          <Button
            component={Link}
            to="/compare"
            search={{ left: told.session_id } as never}
            size="compact-sm"
            variant="default"
          >
            Compare…
          </Button>
          <CopyButton value={location.href}>
            {({ copied, copy }) => (
              <Button size="compact-sm" variant="default" onClick={copy}>
                {copied ? "Copied" : "Copy link"}
              </Button>
            )}
          </CopyButton>
        </div>
      </div>
      <div className={classes.facts}>
        <span className={classes.spare}>
          <Id id={told.session_id} />
        </span>
        <Severity told={told} />
        <Spent told={told} />
        <span>
          {told.agents_count} {told.agents_count === 1 ? "agent" : "agents"},{" "}
          {graph.steps.length.toLocaleString("en")} steps
        </span>
        {told.held > 0 && <span className={classes.held}>‖ {told.held} held</span>}
        <span>
          began <Ago at={told.started_at} />, last word <Ago at={told.last_at} />
        </span>
        {told.stuck && (
          <span className={classes.held}>
            {told.stuck_reason === "pending" ? "an action has been pending" : "silent"} since{" "}
            <Ago at={told.stuck_since} />
          </span>
        )}
      </div>
    </header>
  );
}

const SEVERITY = { loop: "alert", warning: "violation", normal: "idle" } as const;

/** Two detectors, named: the entropy of the last steps, and steps that repeat. */
function Severity({ told }: { told: SessionAnswer }) {
  return (
    <>
      <Tag tone={SEVERITY[told.severity]}>
        entropy {told.entropy_score === null ? "unknown" : told.entropy_score.toFixed(2)}: {told.severity}
      </Tag>
      {told.loop_detected_at ? (
        <Tag tone="alert">
          ⟲ loop since <Ago at={told.loop_detected_at} />
        </Tag>
      ) : (
        <span className={classes.spare}>
          <Tag tone="idle">no repeated steps</Tag>
        </span>
      )}
    </>
  );
}

function Spent({ told }: { told: SessionAnswer }) {
  const cap = told.cap;
  const most = cap ? (cap.hard ?? cap.soft) : null;
  if (!cap || most === null)
    return (
      <span>
        <Money dollars={told.cost} /> spent, no cap
      </span>
    );
  const share = Math.min(1, cap.share);
  return (
    <span className={classes.cap}>
      <Money dollars={told.cost} /> spent · {cap.scope} cap: {money(cap.spent)} of {money(most)}
      <span
        className={classes.meter}
        aria-hidden
        data-tone={
          cap.share >= 1 ? "alert" : cap.soft !== null && cap.spent >= cap.soft ? "blocked" : undefined
        }
      >
        <span style={{ width: `${share * 100}%` }} />
      </span>
      <span className={classes.share}>{Math.round(cap.share * 100)} %</span>
    </span>
  );
}

function Pausing({ told }: { told: SessionAnswer }) {
  const denied = useWhyNot("operate");
  const running = told.agents.filter((agent) => !agent.paused);
  const paused = told.agents.filter((agent) => agent.paused);
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button
          size="compact-sm"
          variant={paused.length > 0 ? "light" : "default"}
          disabled={denied !== undefined}
          title={denied}
        >
          ‖ Pause{paused.length > 0 ? ` (${paused.length} paused)` : "…"}
        </Button>
      </Menu.Target>
      <Menu.Dropdown className={classes.menu}>
        {running.length > 1 && (
          <Menu.Item
            onClick={async () => {
              for (const agent of running) await pause(told.session_id, agent.agent_id);
            }}
          >
            Pause all {running.length} agents here
          </Menu.Item>
        )}
        {running.map((agent) => (
          <Menu.Item key={agent.agent_id} onClick={() => void pause(told.session_id, agent.agent_id)}>
            Pause {agent.agent_id}
          </Menu.Item>
        ))}
        {paused.length > 0 && <Menu.Divider />}
        {paused.map((agent) => (
          <Menu.Item key={agent.agent_id} onClick={() => void unpause(told.session_id, agent.agent_id)}>
            Unpause {agent.agent_id}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
