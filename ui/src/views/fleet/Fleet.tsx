// Fleet Command: health, problems and cost of the mesh. The map (or the equivalent list) fills the view; four
// panels and the time strip are docked below. The URL is the whole state.
import { useLocalStorage, useMediaQuery } from "@mantine/hooks";
import { useCallback, useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import type { FleetPicture, NodeRecord, Topology } from "~/graph";
import { useConnection } from "~/live/useLive";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { ErrorBoundary } from "~/widgets/ErrorBoundary";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import classes from "./Fleet.module.css";
import { FleetList } from "./FleetList";
import { FleetMap } from "./FleetMap";
import { Legend } from "./Legend";
import { Dock, PHONE } from "./panels/Dock";
import { atOf, backFrom, stripAt } from "./strip";
import { TimeStrip } from "./TimeStrip";
import { Toolbar } from "./Toolbar";
import { useNodes } from "./useNodes";
import { lookingOf } from "./viewState";

const NO_NODES: readonly NodeRecord[] = [];

export function Fleet() {
  const [search, setUrl] = useUrl();
  const looking = useMemo(() => lookingOf(search), [search]);
  const connection = useConnection();
  const present = useNodes();
  const replay = useApi(
    "/v1/fleet",
    { level: "agent", limit: 2_000, at: looking.at ?? undefined },
    { enabled: looking.at !== null, keep: true },
  );
  const replayed = looking.at === null ? undefined : replay.data;
  const nodes =
    looking.at === null ? present.nodes : ((replayed?.nodes as NodeRecord[] | undefined) ?? NO_NODES);
  const stale = connection !== "live" && looking.at === null && present.ready;
  const [map, setMap] = useState<Topology | null>(null);
  const phone = useMediaQuery(PHONE) ?? false;
  // On a phone it would cover half the map, so there it is shown only on request.
  const [legend, setLegend] = useLocalStorage({
    key: `observatory.fleet.legend${phone ? ".phone" : ""}`,
    defaultValue: !phone,
  });
  const note = looking.at === null ? null : (replayed?.note ?? null);
  const onMap = useCallback((made: Topology | null) => setMap(made), []);
  useFleetKeys(looking, setUrl, map);
  const empty = present.ready && present.nodes.length === 0 && looking.at === null;
  return (
    <section className={classes.view} aria-label="Fleet Command">
      <h1 className="unseen">Fleet Command</h1>
      <ErrorBoundary of="The toolbar">
        <Toolbar
          looking={looking}
          nodes={nodes}
          fit={() => map?.fit()}
          legend={legend}
          setLegend={setLegend}
        />
      </ErrorBoundary>
      <div className={classes.stage}>
        {looking.list ? (
          <div className={classes.list} data-stale={stale || undefined}>
            <ErrorBoundary of="The list of agents">
              <FleetList looking={looking} nodes={nodes} peek={search.peek} />
            </ErrorBoundary>
          </div>
        ) : (
          <>
            <ErrorBoundary of="The map">
              <FleetMap
                looking={looking}
                replayed={replayed as FleetPicture | undefined}
                stale={stale}
                above={note || stale ? 48 : 0}
                below={legend && !phone ? 52 : 0}
                peek={search.peek}
                onMap={onMap}
              />
            </ErrorBoundary>
            {legend && (
              <ErrorBoundary of="The legend">
                <Legend nodes={nodes} />
              </ErrorBoundary>
            )}
          </>
        )}
        <FleetNotice stale={stale} note={note} problem={looking.at === null ? null : replay.error} />
        {empty && <NoAgents />}
        {!present.ready && looking.at === null && (
          <div className={classes.middle}>
            <Loading />
          </div>
        )}
      </div>
      <Dock />
      <ErrorBoundary of="The time strip">
        <TimeStrip
          at={looking.at}
          standing={connection === "live" ? "live" : present.ready ? "old" : "connecting"}
        />
      </ErrorBoundary>
    </section>
  );
}

function useFleetKeys(
  looking: ReturnType<typeof lookingOf>,
  setUrl: ReturnType<typeof useUrl>[1],
  map: Topology | null,
): void {
  const field = () => document.querySelector<HTMLInputElement>('[data-fleet-field="find"]')?.focus();
  const strip = () => stripAt(Date.now(), 720);
  const step = (by: number) => setUrl({ at: atOf(backFrom(looking.at, strip()) + by, strip()) }, true);
  useKeys(
    {
      f: { says: "Find agents by an expression", run: field },
      l: { says: "Map or list", run: () => setUrl({ list: looking.list ? null : "1" }) },
      g: {
        says: "Logical or geographic layer",
        run: () => setUrl({ layer: looking.layer === "logical" ? "geographic" : null }),
      },
      "0": { says: "Show the whole map", run: () => map?.fit() },
      "[": { says: "Replay: a minute earlier", run: () => step(1) },
      "]": { says: "Replay: a minute later", run: () => step(-1) },
      n: { says: "Back to now", run: () => setUrl({ at: null }) },
    },
    "Fleet Command",
  );
}

/** Notes about the picture itself: that it is old, or what a replay does not include. */
function FleetNotice({
  stale,
  note,
  problem,
}: {
  stale: boolean;
  note: string | null;
  problem: Error | null;
}) {
  const [since] = useState(() => ({ at: 0 }));
  const now = useNow();
  if (!stale) since.at = now;
  if (problem)
    return (
      <div className={classes.said}>
        <ErrorNotice problem={problem} />
      </div>
    );
  if (stale) {
    const s = Math.max(1, Math.round((now - since.at) / 1000));
    return (
      <p className={classes.said} role="status">
        ○ Not connected. Data is {s} s old; it resumes automatically when the gateway responds.
      </p>
    );
  }
  return note ? (
    <p className={classes.said} role="status">
      ◷ {note}
    </p>
  ) : null;
}

const HELLO = `python3 -c "from observatory import Agent
with Agent('hello-1', agent_type='greeter').session() as session: session.step('Say hello', status='success')"`;

function NoAgents() {
  return (
    <div className={classes.middle}>
      <h2>No agents yet</h2>
      <Empty command={HELLO}>
        Agents appear here with their first message or heartbeat. To send one, on the gateway's machine:
      </Empty>
      <Empty command="observatory demo">Or run a simulated mesh, on its own port with its own data:</Empty>
    </div>
  );
}
