// Agent panel: type, state and reason, sessions, alerts, traffic and actions. State comes live, the rest from
// the registry every few seconds.
import { Progress } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { NodeRecord } from "~/graph";
import type { AgentItem } from "~/protocol/openapi";
import { Ago, Money } from "~/widgets/Figures";
import { rate, short } from "~/widgets/format";
import { Mark, Tag } from "~/widgets/Mark";
import { Loaded } from "~/widgets/Panel";
import classes from "./agent.module.css";
import { AgentActions } from "./agentActions";
import { folded } from "./agentAlarms";
import { AgentEdges } from "./agentEdges";
import { nodeIn, useFleet } from "./agentLive";
import { AgentSessions } from "./agentSessions";

const LIVENESS: Record<AgentItem["liveness"], { mark: string; says: string; tone: string }> = {
  healthy: { mark: "♥", says: "heard", tone: "good" },
  zombie: { mark: "!", says: "heartbeat overdue", tone: "alert" },
  evicted: { mark: "×", says: "evicted", tone: "alert" },
  unknown: { mark: "?", says: "no heartbeat yet", tone: "idle" },
};

export function AgentPeek({ id }: { id: string }) {
  const query = useApi("/v1/agents/{agent_id}", {}, { params: { agent_id: id }, every: 3_000, keep: true });
  const node = useFleet((picture) => nodeIn(picture, id), id) ?? null;
  return (
    <div className={classes.peek}>
      <Loaded query={query} rows={8}>
        {(agent) => (
          <>
            <Head agent={agent} node={node} />
            <AgentActions agent={agent} />
            <Alarms node={node} />
            <AgentSessions id={agent.agent_id} />
            <AgentEdges id={agent.agent_id} />
            <Past id={agent.agent_id} />
            <Facts agent={agent} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function Head({ agent, node }: { agent: AgentItem; node: NodeRecord | null }) {
  const live = LIVENESS[agent.liveness];
  const task = agent.task as { description?: string; task_id?: string; progress_pct?: number } | null;
  const usage = agent.usage as { tokens_consumed_24h?: number; api_calls_24h?: number } | null;
  return (
    <header className={classes.head}>
      <h3>{agent.display_name}</h3>
      <p className={classes.state}>
        <Mark state={node?.state ?? agent.state} /> <span>{node?.reason ?? agent.state_reason}</span>
      </p>
      {node?.intent && <p className={classes.intent}>“{node.intent}”</p>}
      <p className={classes.line}>
        <Tag tone={live.tone}>
          {live.mark} {live.says}
        </Tag>
        {agent.last_heartbeat_at && (
          <span>
            heartbeat <Ago at={agent.last_heartbeat_at} />
          </span>
        )}
        {agent.status && <Tag tone="idle">{agent.status}</Tag>}
        <Link to="/registry/$agentId" params={{ agentId: agent.agent_id }}>
          Open agent page
        </Link>
      </p>
      {task && (
        <div className={classes.task}>
          <span>{task.description ?? task.task_id ?? "task"}</span>
          {typeof task.progress_pct === "number" && (
            <>
              <Progress value={task.progress_pct} size="sm" aria-label="Task progress" />
              <span>{Math.round(task.progress_pct)} %</span>
            </>
          )}
        </div>
      )}
      <dl className={classes.figures}>
        <div>
          <dt>rate</dt>
          <dd>{rate(node?.rate_per_s ?? 0)}</dd>
        </div>
        <div>
          <dt>cost per minute</dt>
          <dd>
            <Money dollars={node?.cost_per_min} />
          </dd>
        </div>
        <div>
          <dt>failures, 60 s</dt>
          <dd>{node?.failures_60s === undefined ? "–" : short(Math.round(node.failures_60s))}</dd>
        </div>
        <div>
          <dt>messages</dt>
          <dd title={String(agent.messages)}>{short(agent.messages)}</dd>
        </div>
        {usage?.tokens_consumed_24h !== undefined && (
          <div>
            <dt>tokens, 24 h</dt>
            <dd title={String(usage.tokens_consumed_24h)}>{short(usage.tokens_consumed_24h)}</dd>
          </div>
        )}
        {usage?.api_calls_24h !== undefined && (
          <div>
            <dt>calls, 24 h</dt>
            <dd>{short(usage.api_calls_24h)}</dd>
          </div>
        )}
      </dl>
    </header>
  );
}

/** Current alerts. */
function Alarms({ node }: { node: NodeRecord | null }) {
  const open = node?.alarms ?? [];
  if (open.length === 0) return null;
  return (
    <section className={classes.part} aria-label="Open alerts">
      <h4>Open alerts</h4>
      <ul className={classes.rows}>
        {open.map((alarm) => (
          <li key={`${alarm.kind} ${alarm.session_id} ${alarm.detector} ${alarm.text}`}>
            <Tag tone={alarm.severity === "critical" ? "alert" : "blocked"}>
              ! {alarm.kind.replaceAll("_", " ")}
            </Tag>
            <span className={classes.wide}>
              {alarm.text ?? alarm.kind}
              {alarm.detector && `, detected by: ${alarm.detector}`}
            </span>
            {alarm.session_id && (
              <Link to="/sessions/$sessionId" params={{ sessionId: alarm.session_id }}>
                session
              </Link>
            )}
            {alarm.since && <Ago at={alarm.since} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Past({ id }: { id: string }) {
  const alertsQuery = useApi("/v1/alerts", { limit: 200 }, { every: 5_000, keep: true });
  const past = folded(alertsQuery.data?.items ?? [], id).slice(0, 5);
  if (past.length === 0) return null;
  return (
    <section className={classes.part} aria-label="Recent alerts">
      <h4>Recent alerts</h4>
      <ul className={classes.rows}>
        {past.map(({ text, times, last }) => (
          <li key={text}>
            <Tag tone="idle">{last.open ? "open" : "past"}</Tag>
            <span className={classes.wide}>
              {text}
              {times > 1 && ` (${times} times)`}
            </span>
            {last.session_id && (
              <Link
                to="/sessions/$sessionId"
                params={{ sessionId: last.session_id }}
                search={{ step: String(last.sequence_number) } as never}
              >
                step
              </Link>
            )}
            <Ago at={last.at} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Facts({ agent }: { agent: AgentItem }) {
  const facts: [string, React.ReactNode][] = [
    ["type", agent.agent_type ?? "–"],
    ["version", agent.capability_version ?? "–"],
    ["model", [agent.model, agent.provider].filter(Boolean).join(" by ") || "not reported"],
    ["cluster", agent.cluster_id ?? "none"],
    ["capabilities", agent.capabilities.join(", ") || "–"],
    ["trust", agent.trust_level.replace("_", " ")],
    ["first seen", <Ago key="first" at={agent.first_seen_at} />],
    ["last message", <Ago key="last" at={agent.last_seen_at} />],
  ];
  return (
    <section className={classes.part} aria-label="Details">
      <h4>Details</h4>
      <dl className={classes.facts}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
