// Session panel: goal, status, agents, cost against its cap, alerts and pending decisions. The full page is
// one button away.
import { Button, Progress } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { SessionAnswer } from "~/protocol/openapi";
import { usePeek } from "~/shell/peek";
import { Ago, Id, Money } from "~/widgets/Figures";
import { short } from "~/widgets/format";
import { Tag } from "~/widgets/Mark";
import { Loaded } from "~/widgets/Panel";
import { STATUSES } from "~/widgets/status";
import classes from "./peeks.module.css";

export function SessionPeek({ id }: { id: string }) {
  const query = useApi("/v1/sessions/{session_id}", undefined, {
    params: { session_id: id },
    every: 3_000,
  });
  return (
    <div className={classes.peek}>
      <Loaded query={query} rows={8}>
        {(session) => <Seen session={session} />}
      </Loaded>
    </div>
  );
}

function Seen({ session }: { session: SessionAnswer }) {
  const navigate = useNavigate();
  const { open } = usePeek();
  const sign = STATUSES[session.status];
  const href = `/sessions/${encodeURIComponent(session.session_id)}`;
  return (
    <>
      <div>
        <Tag tone={sign.tone}>
          <span aria-hidden>{sign.mark}</span> {session.status}
        </Tag>
        <h3 className={classes.title}>{session.goal ?? "No goal reported"}</h3>
        <Id id={session.session_id} length={22} />
      </div>
      <Button onClick={() => void navigate({ href })}>Open session</Button>
      <Alarms session={session} />
      <dl className={classes.facts}>
        <dt>Cost</dt>
        <dd>
          <Money dollars={session.cost} />
          {session.cap && <Cap cap={session.cap} />}
        </dd>
        <dt>Steps</dt>
        <dd>
          {short(session.messages)} messages, {short(session.tokens)} tokens
        </dd>
        <dt>Started</dt>
        <dd>
          <Ago at={session.started_at} />, last activity <Ago at={session.last_at} />
        </dd>
        {session.confidence !== null && (
          <>
            <dt>Last confidence</dt>
            <dd>{Math.round(session.confidence * 100)} %</dd>
          </>
        )}
      </dl>
      <section>
        <h4 className={classes.sub}>{plural(session.agents_count, "agent")}</h4>
        <ul className={classes.list}>
          {session.agents.map((agent) => (
            <li key={agent.agent_id}>
              <button type="button" className={classes.link} onClick={() => open(`agent:${agent.agent_id}`)}>
                {agent.agent_id}
              </button>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

function Cap({ cap }: { cap: NonNullable<SessionAnswer["cap"]> }) {
  const most = cap.hard ?? cap.soft ?? 0;
  const share = Math.round(cap.share * 100);
  const capName = cap.scope === "session" ? "its cap" : `the ${cap.scope}'s cap`;
  return (
    <div className={classes.cap}>
      <Progress
        value={Math.min(100, share)}
        color={cap.share >= 1 ? "red" : cap.share >= 0.8 ? "yellow" : undefined}
        size={6}
        aria-label={`${share} percent of ${capName}`}
      />
      <span>
        {share} % of {capName} of <Money dollars={most} />
      </span>
    </div>
  );
}

function Alarms({ session }: { session: SessionAnswer }) {
  const problems: string[] = [];
  if (session.severity === "loop") problems.push("⟲ An agent is looping.");
  if (session.severity === "warning") problems.push("⟲ Warning: repetition.");
  if (session.stuck)
    problems.push(
      session.stuck_reason === "pending" ? "! Stuck: a decision is pending." : "! Stuck: no agent is active.",
    );
  if (session.held > 0) problems.push(`‖ ${plural(session.held, "message is", "messages are")} held.`);
  if (session.paused > 0) problems.push(`‖ ${plural(session.paused, "agent is", "agents are")} paused.`);
  if (problems.length === 0) return null;
  return (
    <ul className={classes.alarms}>
      {problems.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}
