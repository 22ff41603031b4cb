// The agent page: details, heartbeats and history, sessions, cost, drift, and actions. The same actions as in
// the panel, plus history.
import { Button, CopyButton } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import peek from "~/peeks/agent.module.css";
import { AgentActions } from "~/peeks/agentActions";
import { AgentSessions } from "~/peeks/agentSessions";
import type { AgentItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { Mark } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import classes from "./agent/Agent.module.css";
import { Certificate } from "./agent/Certificate";
import { Cost } from "./agent/Cost";
import { Drift } from "./agent/Drift";
import { Grants } from "./agent/Grants";
import { HeartbeatHistory } from "./agent/HeartbeatHistory";
import { History } from "./agent/History";
import { useHistory } from "./agent/useHistory";
import { LivenessMark } from "./LivenessMark";
import { TRUSTS } from "./registryRows";

export function Agent() {
  const { agentId } = useParams({ strict: false }) as { agentId: string };
  const query = useApi(
    "/v1/agents/{agent_id}",
    {},
    { params: { agent_id: agentId }, every: 3_000, keep: true },
  );
  if (query.error?.code === 404)
    return (
      <div className={classes.page}>
        <Empty command="observatory agents list">
          There is no agent {agentId}. It may belong to another tenant, or has not sent anything yet.{" "}
          <Link to="/registry">All agents</Link>
        </Empty>
      </div>
    );
  if (!query.data)
    return (
      <div className={classes.page}>
        {query.error ? (
          <ErrorNotice problem={query.error} again={() => query.refetch()} />
        ) : (
          <Loading rows={8} />
        )}
      </div>
    );
  return <Opened key={query.data.entity_id} agent={query.data} stale={query.error} />;
}

function Opened({ agent, stale }: { agent: AgentItem; stale: Error | null }) {
  const history = useHistory(agent);
  return (
    <section className={classes.page} aria-label={`Agent ${agent.agent_id}`}>
      <Header agent={agent} />
      {stale && <p className={classes.stale}>Not up to date: {stale.message}</p>}
      <div className={classes.columns}>
        <div className={classes.column}>
          <HeartbeatHistory agent={agent} history={history} />
          <Cost agent_id={agent.agent_id} />
          <Drift agent={agent} />
          <History history={history} />
        </div>
        <div className={classes.column}>
          <Panel label="Actions and sessions">
            <div className={peek.peek}>
              <AgentActions agent={agent} />
              <AgentSessions id={agent.agent_id} />
            </div>
          </Panel>
          <About agent={agent} />
          <Grants agent={agent} />
          <Certificate agent={agent} />
        </div>
      </div>
    </section>
  );
}

function Header({ agent }: { agent: AgentItem }) {
  return (
    <header className={classes.header}>
      <nav aria-label="Drill-down" className={classes.crumbs}>
        <Link to="/registry">Registry</Link>
        {agent.agent_type && (
          <Link to="/registry" search={{ type: agent.agent_type } as never}>
            {agent.agent_type}
          </Link>
        )}
      </nav>
      <h1>{agent.display_name}</h1>
      <Mark state={agent.state} />
      <span className={classes.why}>{agent.state_reason}</span>
      <span className={classes.doing}>
        <Button
          component={Link}
          to="/fleet"
          search={{ level: "agent", peek: `agent:${agent.agent_id}` } as never}
          size="compact-sm"
          variant="default"
        >
          Show on map
        </Button>
        <CopyButton value={location.href}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy link"}
            </Button>
          )}
        </CopyButton>
      </span>
    </header>
  );
}

function About({ agent }: { agent: AgentItem }) {
  const names = useNames();
  const facts: [string, React.ReactNode][] = [
    ["liveness", <LivenessMark key="live" live={agent.liveness} />],
    ["type", agent.agent_type ?? "not reported"],
    ["version", agent.capability_version ?? "not reported"],
    ["model", [agent.model, agent.provider].filter(Boolean).join(", ") || "not reported"],
    ["capabilities", agent.capabilities.join(", ") || "none reported"],
    ["trust", TRUSTS[agent.trust_level]],
    ["hub address", agent.hub_address ?? "not reported"],
    ["cluster", agent.cluster_id ?? "none"],
    ["owner", agent.owner ? names(agent.owner) : "none"],
    ...(agent.team_id ? ([["team", agent.team_id]] as [string, string][]) : []),
    ...(agent.workspace_id ? ([["workspace", agent.workspace_id]] as [string, string][]) : []),
    ["messages", agent.messages.toLocaleString("en")],
    ["first seen", <Ago key="first" at={agent.first_seen_at} />],
    ["last message", <Ago key="last" at={agent.last_seen_at} />],
    ...(agent.evicted_at
      ? ([["evicted", <Ago key="out" at={agent.evicted_at} />]] as [string, React.ReactNode][])
      : []),
    ["entity id", <Id key="id" id={agent.entity_id} length={22} />],
  ];
  return (
    <Panel title="Details">
      <dl className={classes.facts}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
