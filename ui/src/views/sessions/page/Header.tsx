// The session's header: goal, status, cost, and actions on the whole session.
import { Button, CopyButton, Menu } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { pause, unpause } from "~/commands/session";
import { plural } from "~/plural";
import type { SessionAnswer } from "~/protocol/openapi";
import { Ago, Id, Money } from "~/widgets/Figures";
import { money } from "~/widgets/format";
import { Tag } from "~/widgets/Mark";
import { STATUSES } from "~/widgets/status";
import { useWhyNot } from "~/widgets/users";
import type { Graph } from "../dag/graph";
import classes from "./Page.module.css";

export function Header({ session, graph }: { session: SessionAnswer; graph: Graph }) {
  const { status } = session;
  const sign = STATUSES[status];
  const goal = session.goal ?? graph.steps.find((step) => step.intent)?.intent;
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
          <PauseMenu session={session} />
          <Button
            component={Link}
            to="/compare"
            search={{ left: session.session_id } as never}
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
          <Id id={session.session_id} />
        </span>
        <Severity session={session} />
        <Spent session={session} />
        <span>
          {plural(session.agents_count, "agent")}, {graph.steps.length.toLocaleString("en")} steps
        </span>
        {session.held > 0 && <span className={classes.held}>‖ {session.held} held</span>}
        <span>
          started <Ago at={session.started_at} />, last activity <Ago at={session.last_at} />
        </span>
        {session.stuck && (
          <span className={classes.held}>
            {session.stuck_reason === "pending" ? "an action has been pending" : "silent"} since{" "}
            <Ago at={session.stuck_since} />
          </span>
        )}
      </div>
    </header>
  );
}

const SEVERITY = { loop: "alert", warning: "violation", normal: "idle" } as const;

/** Both detectors: the entropy of the last steps, and repeated steps. */
function Severity({ session }: { session: SessionAnswer }) {
  return (
    <>
      <Tag tone={SEVERITY[session.severity]}>
        entropy {session.entropy_score === null ? "unknown" : session.entropy_score.toFixed(2)}:{" "}
        {session.severity}
      </Tag>
      {session.loop_detected_at ? (
        <Tag tone="alert">
          ⟲ loop since <Ago at={session.loop_detected_at} />
        </Tag>
      ) : (
        <span className={classes.spare}>
          <Tag tone="idle">no repeated steps</Tag>
        </span>
      )}
    </>
  );
}

function Spent({ session }: { session: SessionAnswer }) {
  const cap = session.cap;
  const most = cap ? (cap.hard ?? cap.soft) : null;
  if (!cap || most === null)
    return (
      <span>
        <Money dollars={session.cost} /> spent, no cap
      </span>
    );
  const share = Math.min(1, cap.share);
  return (
    <span className={classes.cap}>
      <Money dollars={session.cost} /> spent · {cap.scope} cap: {money(cap.spent)} of {money(most)}
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

function PauseMenu({ session }: { session: SessionAnswer }) {
  const denied = useWhyNot("operate");
  const running = session.agents.filter((agent) => !agent.paused);
  const paused = session.agents.filter((agent) => agent.paused);
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
              for (const agent of running) await pause(session.session_id, agent.agent_id);
            }}
          >
            Pause all {plural(running.length, "agent")}
          </Menu.Item>
        )}
        {running.map((agent) => (
          <Menu.Item key={agent.agent_id} onClick={() => void pause(session.session_id, agent.agent_id)}>
            Pause {agent.agent_id}
          </Menu.Item>
        ))}
        {paused.length > 0 && <Menu.Divider />}
        {paused.map((agent) => (
          <Menu.Item key={agent.agent_id} onClick={() => void unpause(session.session_id, agent.agent_id)}>
            Resume {agent.agent_id}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
