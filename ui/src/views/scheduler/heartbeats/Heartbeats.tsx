// Every agent's heartbeat as a cell that fades with its silence; next to it the agents with overdue
// heartbeats, with timers, and the stuck sessions.
import { CloseButton, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { usePeekList } from "~/shell/peek";
import { useUrl } from "~/useUrl";
import { LIVENESS, LIVES } from "~/widgets/liveness";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { useSearchText } from "~/widgets/useSearchText";
import classes from "../Scheduler.module.css";
import { useAgents } from "../useSchedule";
import { counted, groupsOf, readShown, toggled } from "./beats";
import { Cells } from "./Cells";
import own from "./Heartbeats.module.css";
import { SilentAgents, Stuck } from "./SilentAgents";

/** Agents the side panel's J and K can reach. */
const LISTED = 300;

export function Heartbeats() {
  const [url, setUrl] = useUrl();
  const { q, live } = url;
  const shown = useMemo(() => readShown({ q, live }), [q, live]);
  const query = useAgents();
  // Cells change in steps of ten seconds of silence: updated every other second.
  const now = Math.floor(useNow() / 2_000) * 2_000;
  const agents = query.data?.items;
  const groups = useMemo(() => groupsOf(agents ?? [], shown, now), [agents, shown, now]);
  const counts = useMemo(() => counted(agents ?? []), [agents]);
  const search = useSearchText(shown.q, (next) => setUrl({ q: next }, true));
  const listed = groups.flatMap(({ beats }) => beats.map((one) => `agent:${one.agent_id}`));
  usePeekList(listed.slice(0, LISTED));
  return (
    <div className={classes.split}>
      <div className={classes.main}>
        <search className={classes.bar} aria-label="Filter the heartbeats">
          <TextInput
            size="xs"
            type="text"
            className={classes.search}
            aria-label="Search agents, types and clusters"
            placeholder="agent, type, cluster"
            value={search.text}
            onChange={(event) => search.type(event.currentTarget.value)}
            rightSection={
              search.text && (
                <CloseButton
                  size="xs"
                  aria-label="Clear search"
                  onClick={() => {
                    search.clear();
                    setUrl({ q: null }, true);
                  }}
                />
              )
            }
          />
          <fieldset className={own.chips}>
            <legend className="unseen">Liveness</legend>
            {LIVENESS.map((one) => (
              <button
                key={one}
                type="button"
                className={own.chip}
                data-tone={LIVES[one].tone}
                aria-pressed={shown.live.includes(one)}
                title={LIVES[one].means}
                onClick={() => setUrl({ live: toggled(shown.live, one) || null }, true)}
              >
                <span aria-hidden>{LIVES[one].mark}</span> {LIVES[one].word} <b>{counts[one]}</b>
              </button>
            ))}
          </fieldset>
        </search>
        {agents && agents.length > 0 && (
          <Cells
            groups={groups}
            peek={url.peek}
            onPeek={(agent_id) => setUrl({ peek: `agent:${agent_id}` })}
          />
        )}
        {!agents && query.error && <ErrorNotice problem={query.error} again={() => query.refetch()} />}
        {!agents && !query.error && <Loading rows={6} />}
        {agents?.length === 0 && (
          <Empty command="observatory demo">
            No agents yet. An agent appears with its first heartbeat (the SDK sends them automatically); to
            start a demo mesh:
          </Empty>
        )}
        {agents && agents.length > 0 && (
          <p className={classes.foot} role="status">
            {query.error && <span className={classes.stale}>Not up to date: {query.error.message}</span>}
            <span>
              {listed.length === agents.length ? agents.length : `${listed.length} of ${agents.length}`}{" "}
              agents
            </span>
            <span>A cell fades with silence: 10, 20, 30, 45, 60, 90 s.</span>
          </p>
        )}
      </div>
      <aside className={classes.aside} aria-label="Silent agents and stuck sessions" tabIndex={-1}>
        <Panel title="Silent agents">
          {agents ? <SilentAgents agents={agents} /> : <Loading rows={3} />}
        </Panel>
        <Stuck />
      </aside>
    </div>
  );
}
