// A session at a glance: what it is for, how it stands, who works in it, what it cost of what it may, what is
// wrong and what waits. The whole of it is one button away.
import { Button, Progress } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import type { SessionAnswer } from "~/protocol/openapi";
import { usePeek } from "~/shell/peeking";
import { Ago, Id, Money } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Shown } from "~/widgets/Panel";
import { STATUSES } from "~/widgets/status";
import { short } from "~/widgets/words";
import classes from "./peeks.module.css";

export function SessionPeek({ id }: { id: string }) {
  const asked = useAnswer("/v1/sessions/{session_id}", undefined, {
    params: { session_id: id },
    every: 3_000,
  });
  return (
    <div className={classes.peek}>
      <Shown asked={asked} rows={8}>
        {(session) => <Seen session={session} />}
      </Shown>
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
        <h3 className={classes.title}>{session.goal ?? "No agent has said what it is for"}</h3>
        <Id id={session.session_id} length={22} />
      </div>
      <Button onClick={() => void navigate({ href })}>Open the session</Button>
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
        <dt>Began</dt>
        <dd>
          <Ago at={session.started_at} />, last heard <Ago at={session.last_at} />
        </dd>
        {session.confidence !== null && (
          <>
            <dt>Last sure</dt>
            <dd>{Math.round(session.confidence * 100)} %</dd>
          </>
        )}
      </dl>
      <section>
        <h4 className={classes.sub}>
          {session.agents_count} {session.agents_count === 1 ? "agent" : "agents"}
        </h4>
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
  const whose = cap.scope === "session" ? "its cap" : `the ${cap.scope}'s cap`;
  return (
    <div className={classes.cap}>
      <Progress
        value={Math.min(100, share)}
        color={cap.share >= 1 ? "red" : cap.share >= 0.8 ? "yellow" : undefined}
        size={6}
        aria-label={`${share} percent of ${whose}`}
      />
      <span>
        {share} % of {whose} of <Money dollars={most} />
      </span>
    </div>
  );
}

function Alarms({ session }: { session: SessionAnswer }) {
  const said: string[] = [];
  if (session.severity === "loop") said.push("⟲ An agent goes in circles in it.");
  if (session.severity === "warning") said.push("⟲ It begins to repeat itself.");
  if (session.stuck)
    said.push(session.stuck_reason === "pending" ? "! Stuck: nobody answers." : "! Stuck: all are silent.");
  if (session.held > 0)
    said.push(`‖ ${session.held} ${session.held === 1 ? "message is" : "messages are"} held.`);
  if (session.paused > 0)
    said.push(`‖ ${session.paused} ${session.paused === 1 ? "agent is" : "agents are"} paused.`);
  if (said.length === 0) return null;
  return (
    <ul className={classes.alarms}>
      {said.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}
