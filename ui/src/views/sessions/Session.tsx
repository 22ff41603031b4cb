// The session page: causal graph, step, scratchpad and console in three resizable panes; tabs on a phone.
// Selection, colouring, scrub position and playback are in the URL.
import { useElementSize } from "@mantine/hooks";
import { Link, useParams } from "@tanstack/react-router";
import { useCallback, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import { useConnection } from "~/live/useLive";
import type { SessionAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { Console } from "./console/Console";
import { Dag } from "./dag/Dag";
import { type Step, stepNamed } from "./dag/graph";
import { walk } from "./dag/navigation";
import { useGraph } from "./dag/useGraph";
import { Agents } from "./page/Agents";
import { Header } from "./page/Header";
import classes from "./page/Page.module.css";
import { Split } from "./page/Split";
import { type Tab, Tabs } from "./page/Tabs";
import { Memory } from "./scratch/Memory";
import { Scratchpad } from "./scratch/Scratchpad";
import { Scrub } from "./scratch/Scrub";
import { useInfected } from "./scratch/useInfected";
import type { Highlight } from "./step/highlight";
import { StepPanel } from "./step/StepPanel";

export function Session() {
  const { sessionId } = useParams({ strict: false }) as { sessionId: string };
  const query = useApi("/v1/sessions/{session_id}", undefined, {
    params: { session_id: sessionId },
    every: 3_000,
  });
  if (query.data) return <Opened key={query.data.session_id} details={query.data} />;
  if (query.error?.code === 404)
    return (
      <div className={classes.page}>
        <Empty command="observatory tail">
          There is no session {sessionId}. It may belong to another tenant, or have no messages yet: a session
          that starts later appears automatically. <Link to="/sessions">All sessions</Link>
        </Empty>
      </div>
    );
  return (
    <div className={classes.page}>
      {query.error ? (
        <ErrorNotice problem={query.error} again={() => query.refetch()} />
      ) : (
        <Loading rows={6} />
      )}
    </div>
  );
}

function Opened({ details }: { details: SessionAnswer }) {
  const sessionId = details.session_id;
  const [url, setUrl] = useUrl();
  const { graph, ready, at: asOf } = useGraph(sessionId);
  const connection = useConnection();
  // By the available width, not the window's: an open side panel takes some of it.
  const { ref: body, width } = useElementSize();
  const phone = (width || window.innerWidth) < 700;
  const narrow = (width || window.innerWidth) < 1180;
  const [lit, setLit] = useState<Highlight | null>(null);
  const [opened, setOpened] = useState(0);
  const at = /^\d+$/.test(url.at ?? "") ? Number(url.at) : null;
  const selected = stepNamed(graph, url.step);
  const infected = useInfected(sessionId, url.fact, url.colour === "infection" || url.fact !== undefined);

  // Another step has other reasoning: playback of the old one ends.
  const stopped = useRef<{ play?: null }>({});
  stopped.current = url.play === "reasoning" ? { play: null } : {};
  const select = useCallback(
    (step: Step, { replace = false, open = false }: { replace?: boolean; open?: boolean } = {}) => {
      setUrl({ step: step.step_id, ...stopped.current, ...(open && phone ? { tab: "step" } : {}) }, replace);
      if (open) setOpened((n) => n + 1);
    },
    [setUrl, phone],
  );
  const choose = useCallback((step: Step) => select(step), [select]);
  const goTo = useCallback(
    (number: number) => {
      const step = stepNamed(graph, String(number));
      if (step) select(step);
    },
    [graph, select],
  );

  const dag = (
    <Dag
      key={sessionId}
      {...{ sessionId, graph, ready, selected, at, lit, infected: infected.steps }}
      unlight={() => setLit(null)}
      goTo={goTo}
      select={phone ? (step, how) => select(step, { ...how, open: !how?.replace || how.open }) : select}
    />
  );
  const step = (
    <StepPanel
      {...{ sessionId, graph, goTo, opened, step: selected }}
      select={choose}
      branch={selected ? (graph.branch.get(selected.id) ?? 0) : 0}
      light={setLit}
      turn={(way) => {
        const next = walk(graph, selected?.id, way);
        if (next) select(next, { replace: true });
      }}
    />
  );
  const scratch: Tab = {
    name: "scratch",
    title: "Scratchpad",
    show: () => <Scratchpad graph={graph} at={at} selected={selected?.id} select={choose} />,
  };
  const memory: Tab = {
    name: "memory",
    title: at === null ? "Memory" : `Memory after #${at}`,
    show: () => <Memory fact={infected.fact} {...{ sessionId, at, goTo }} />,
  };
  const desk = (
    <Console
      sessionId={sessionId}
      agentId={selected?.agent_id ?? undefined}
      stepId={selected?.step_id}
      messageId={selected?.message_id}
    />
  );
  const hands: Tab = { name: "console", title: "Console", show: () => desk };
  const scrub = <Scrub graph={graph} at={at} />;
  return (
    <div className={classes.page}>
      <Header session={details} graph={graph} />
      <Agents sessionId={sessionId} graph={graph} members={details.agents} select={choose} />
      {ready && connection !== "live" && connection !== "connecting" && (
        <p className={classes.offline} role="status">
          Not live: the gateway is unreachable. Showing the last data
          {asOf && (
            <>
              , <Ago at={asOf} />
            </>
          )}
          ; nothing is lost.
        </p>
      )}
      <div ref={body} className={classes.body}>
        {phone ? (
          <div className={classes.column}>
            <div className={classes.grow}>
              <Tabs
                label="Panes"
                tabs={[
                  { name: "graph", title: "Graph", show: () => dag },
                  { name: "step", title: "Step", show: () => step },
                  scratch,
                  memory,
                  hands,
                ]}
              />
            </div>
            {scrub}
          </div>
        ) : (
          <Split
            lie="side-by-side"
            name="session.step"
            label="Width of the step panel"
            start={narrow ? 0.6 : 0.68}
            first={
              <Split
                lie="above"
                name="session.bottom"
                label="Height of the graph"
                start={0.64}
                first={
                  <div className={classes.column}>
                    <div className={classes.grow}>{dag}</div>
                    {scrub}
                  </div>
                }
                second={
                  narrow ? (
                    <Tabs label="Below the graph" tabs={[scratch, memory, hands]} />
                  ) : (
                    <Split
                      lie="side-by-side"
                      name="session.console"
                      label="Width of the scratchpad"
                      start={0.46}
                      first={<Tabs label="Below the graph" tabs={[scratch, memory]} />}
                      second={desk}
                    />
                  )
                }
              />
            }
            second={step}
          />
        )}
      </div>
    </div>
  );
}
