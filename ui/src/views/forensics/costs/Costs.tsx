// Cost attribution of a time range by agent, session, cluster…: one headline figure, then bars that add up to
// it. An agent opens its sessions, a session its branches; what is shown can be saved as a file. Differences
// between reported and computed costs are listed next to it.
import { Button, SegmentedControl } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { Money } from "~/widgets/Figures";
import { money, short } from "~/widgets/format";
import { type Column, Grid } from "~/widgets/Grid";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { BoardLayout, Share } from "../BoardLayout";
import classes from "../BoardLayout.module.css";
import {
  BYS,
  type By,
  csvOf,
  ELSEWHERE,
  fileName,
  jsonOf,
  type Line,
  type Look,
  linesOfBranches,
  linesOfCosts,
  looking,
  SPAN_WORDS,
  type Span,
  sinceOf,
  sorted,
  WINDOWS,
} from "./attribution";
import { Gaps } from "./Gaps";
import { save } from "./save";

const NAMES: Record<By, string> = {
  agent: "Agent",
  session: "Session",
  cluster: "Cluster",
  branch: "Branch",
  type: "Type",
  tool: "Tool",
  model: "Model",
};

function useCosts({ by, agent, session }: Look, since: string) {
  const isBranch = by === "branch";
  const sums = useApi(
    "/v1/costs",
    {
      by: isBranch ? "session" : by,
      since,
      limit: 1_000,
      agent,
      session: by === "agent" ? session : undefined,
    },
    { every: 5_000, keep: true, enabled: !isBranch },
  );
  const branches = useApi(
    "/v1/costs/branches",
    { since, session, limit: 500 },
    { every: 15_000, keep: true, enabled: isBranch },
  );
  const asked = isBranch ? branches : sums;
  const attribution = useMemo(() => {
    if (isBranch)
      return (
        branches.data && {
          lines: linesOfBranches(branches.data),
          total: branches.data.total,
          until: branches.data.until,
        }
      );
    return sums.data?.by === by
      ? { lines: linesOfCosts(sums.data), total: sums.data.total.cost ?? 0, until: sums.data.until }
      : undefined;
  }, [isBranch, branches.data, sums.data, by]);
  return { attribution, error: asked.error, refetch: asked.refetch };
}

export function Costs() {
  const [url, setUrl] = useUrl();
  const look = looking(url);
  const { by, span, agent, session } = look;
  const since = sinceOf(span, useNow());
  const { attribution, error, refetch } = useCosts(look, since);
  const burn = useApi("/v1/costs/burn", undefined, { every: 5_000, keep: true });
  const order = useMemo(() => sorted(attribution?.lines ?? [], url.sort), [attribution, url.sort]);
  const open = (line: Line) => {
    if (by === "agent" && line.id) setUrl({ by: "session", agent: line.id, session: null, sort: null });
    else if (by === "session" && line.id) setUrl({ by: "branch", session: line.id, agent: null, sort: null });
  };
  const count = order.lines.filter((line) => line.key !== ELSEWHERE).length;
  const most = Math.max(...order.lines.map((line) => line.share), 0);
  const columns = useMemo(() => columnsFor(by, most), [by, most]);
  useKeys(
    Object.fromEntries([
      [
        "t",
        {
          says: "Focus the table",
          run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
        },
      ],
      ...(agent || session
        ? [["Backspace", { says: "Back to all", run: () => setUrl({ agent: null, session: null }) }]]
        : []),
    ]),
    "Costs",
  );
  const keep = (kind: "csv" | "json") => {
    if (!attribution) return;
    const { until, total } = attribution;
    const text =
      kind === "csv" ? csvOf(by, order.lines, since, until) : jsonOf(by, order.lines, since, until, total);
    save(fileName(by, until, kind), text, kind === "csv" ? "text/csv" : "application/json");
  };

  return (
    <BoardLayout
      label="Cost attribution"
      lead={
        <>
          {attribution ? <Money dollars={attribution.total} /> : "…"} in {SPAN_WORDS[span]}
        </>
      }
      hint={
        <>
          {attribution && (
            <span title={`${exact(since)} to ${exact(attribution.until)}`}>
              {plural(count, NAMES[by].toLowerCase(), by === "branch" ? "branches" : undefined)}
            </span>
          )}
          {burn.data && <span> · now {money(burn.data.tenant.per_min_5m)}/min</span>}
        </>
      }
      stale={attribution ? error : null}
      tools={
        <>
          <SegmentedControl
            size="xs"
            aria-label="Group by"
            data={BYS.map((value) => ({ value, label: NAMES[value] }))}
            value={by}
            onChange={(next) =>
              setUrl({ by: next === "agent" ? null : next, agent: null, session: null, sort: null })
            }
          />
          <SegmentedControl
            size="xs"
            aria-label="Time range"
            data={Object.keys(WINDOWS)}
            value={span}
            onChange={(next) => setUrl({ span: next === "1h" ? null : (next as Span) })}
          />
          <span className={classes.push}>
            <Button
              size="compact-sm"
              variant="default"
              disabled={!order.lines.length}
              onClick={() => keep("csv")}
            >
              Save CSV
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              disabled={!order.lines.length}
              onClick={() => keep("json")}
            >
              Save JSON
            </Button>
          </span>
        </>
      }
    >
      {(agent || session) && <Crumbs agent={agent} session={session} by={by} />}
      <div className={classes.split}>
        <div className={classes.main}>
          {order.lines.length > 0 && (
            <Grid
              label={`Costs by ${by}`}
              columns={columns}
              rows={order.lines}
              keyOf={(line) => line.key}
              onOpen={by === "agent" || by === "session" ? open : undefined}
              sort={{ id: order.id, down: order.down }}
              onSort={(id) => setUrl({ sort: order.id === id && order.down ? `-${id}` : id }, true)}
            />
          )}
          {!attribution &&
            (error ? <ErrorNotice problem={error} again={() => refetch()} /> : <Loading rows={8} />)}
          {attribution && order.lines.length === 0 && (
            <Empty command='curl -s "$URL/v1/costs?by=agent" -H "Authorization: Bearer $KEY"'>
              {session || agent
                ? "No cost in this time range. Choose a longer one."
                : `No cost in ${SPAN_WORDS[span]}. A step costs its state_delta.cost or the increase of cumulative_session_cost, whichever is more; the same on the command line:`}
            </Empty>
          )}
          {attribution && order.lines.length > 0 && (
            <p className={classes.foot} role="status">
              <span>
                {by === "branch"
                  ? "A branch is a step and its successors until the next fork; branches add up to the total."
                  : by === "agent"
                    ? "Choose an agent for its sessions, then a session for its branches."
                    : by === "session"
                      ? "Choose a session for its branches."
                      : "As named by messages; those without one are in brackets."}
              </span>
            </p>
          )}
        </div>
        <aside className={classes.aside} aria-label="Cost differences">
          <Gaps />
        </aside>
      </div>
    </BoardLayout>
  );
}

function Crumbs({ agent, session, by }: { agent: string | undefined; session: string | undefined; by: By }) {
  const [, setUrl] = useUrl();
  return (
    <nav className={classes.crumbs} aria-label="Drill-down">
      <button
        type="button"
        className={classes.link}
        onClick={() => setUrl({ by: null, agent: null, session: null })}
      >
        all agents
      </button>
      {agent && (
        <>
          <span aria-hidden>›</span>
          <span>
            sessions of{" "}
            <Link to="/registry/$agentId" params={{ agentId: agent }}>
              {agent}
            </Link>
          </span>
        </>
      )}
      {session && (
        <>
          <span aria-hidden>›</span>
          <span>
            {by === "agent" ? "agents" : "branches"} of{" "}
            <Link to="/sessions/$sessionId" params={{ sessionId: session }}>
              session {session.slice(0, 8)}…
            </Link>
          </span>
          <button
            type="button"
            className={classes.link}
            onClick={() => setUrl({ by: by === "agent" ? "branch" : null, session, agent: null, sort: null })}
          >
            {by === "agent" ? "by branch" : "by agent"}
          </button>
        </>
      )}
    </nav>
  );
}

function columnsFor(by: By, most: number): Column<Line>[] {
  return [
    {
      id: "name",
      title: NAMES[by],
      sorts: true,
      cell: (line) =>
        line.step && line.session_id ? (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: line.session_id }}
            search={{ step: line.step } as never}
            title={line.name}
          >
            {line.name}
          </Link>
        ) : by === "session" && line.id ? (
          <span className="mono" title={line.id}>
            {line.name}
          </span>
        ) : (
          <span title={line.name}>{line.name}</span>
        ),
    },
    ...(by === "branch"
      ? [
          {
            id: "also",
            title: "Agent",
            width: 170,
            from: 620,
            cell: (line: Line) => line.also,
          } as Column<Line>,
        ]
      : []),
    {
      id: "cost",
      title: "Cost",
      width: 76,
      figure: true,
      sorts: true,
      cell: (line) => <Money dollars={line.cost} />,
    },
    {
      id: "share",
      title: "Share of total",
      width: "32%",
      from: 300,
      cell: (line) => (
        <Share of={most > 0 ? line.share / most : 0} text={`${(line.share * 100).toFixed(1)} %`} />
      ),
    },
    {
      id: "tokens",
      title: "Tokens",
      width: 76,
      from: 560,
      figure: true,
      sorts: true,
      cell: (line) => <span title={line.tokens.toLocaleString("en")}>{short(line.tokens)}</span>,
    },
    {
      id: "calls",
      title: by === "branch" ? "Steps" : "Messages",
      width: 84,
      from: 640,
      figure: true,
      sorts: true,
      cell: (line) => <span title={line.calls.toLocaleString("en")}>{short(line.calls)}</span>,
    },
  ];
}
