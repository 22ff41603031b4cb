// Fleet Command: is the mesh well, what is wrong, what does it cost. The map (or its equal, the list) fills
// the view; four panels and the time strip are docked below. The URL is the whole state.
import { useLocalStorage, useMediaQuery } from "@mantine/hooks";
import { useCallback, useMemo, useState } from "react";
import { useAnswer } from "~/api/questions";
import type { FleetPicture, NodeRecord, Topology } from "~/graph";
import { useConnection } from "~/live/useLive";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Guarded } from "~/widgets/Guarded";
import { useNow } from "~/widgets/now";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import classes from "./Fleet.module.css";
import { FleetList } from "./FleetList";
import { FleetMap } from "./FleetMap";
import { Legend } from "./Legend";
import { lookingOf } from "./looking";
import { Dock, PHONE } from "./panels/Dock";
import { atOf, backFrom, stripAt } from "./strip";
import { TimeStrip } from "./TimeStrip";
import { Toolbar } from "./Toolbar";
import { useNodes } from "./useNodes";

const NOBODY: readonly NodeRecord[] = [];

export function Fleet() {
  const [search, setUrl] = useUrl();
  const looking = useMemo(() => lookingOf(search), [search]);
  const connection = useConnection();
  const present = useNodes();
  const replay = useAnswer(
    "/v1/fleet",
    { level: "agent", limit: 2_000, at: looking.at ?? undefined },
    { enabled: looking.at !== null, keep: true },
  );
  const replayed = looking.at === null ? undefined : replay.data;
  const nodes =
    looking.at === null ? present.nodes : ((replayed?.nodes as NodeRecord[] | undefined) ?? NOBODY);
  const stale = connection !== "live" && looking.at === null && present.ready;
  const [map, setMap] = useState<Topology | null>(null);
  const phone = useMediaQuery(PHONE) ?? false;
  // On a phone it would cover half the map, so there it is shown only when asked for.
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
      <Guarded of="The toolbar">
        <Toolbar
          looking={looking}
          nodes={nodes}
          fit={() => map?.fit()}
          legend={legend}
          setLegend={setLegend}
        />
      </Guarded>
      <div className={classes.stage}>
        {looking.list ? (
          <div className={classes.list} data-stale={stale || undefined}>
            <Guarded of="The list of agents">
              <FleetList looking={looking} nodes={nodes} peek={search.peek} />
            </Guarded>
          </div>
        ) : (
          <>
            <Guarded of="The map">
              <FleetMap
                looking={looking}
                replayed={replayed as FleetPicture | undefined}
                stale={stale}
                above={note || stale ? 48 : 0}
                below={legend && !phone ? 52 : 0}
                peek={search.peek}
                onMap={onMap}
              />
            </Guarded>
            {legend && (
              <Guarded of="The legend">
                <Legend nodes={nodes} />
              </Guarded>
            )}
          </>
        )}
        <Said stale={stale} note={note} problem={looking.at === null ? null : replay.error} />
        {empty && <Nobody />}
        {!present.ready && looking.at === null && (
          <div className={classes.middle}>
            <Loading />
          </div>
        )}
      </div>
      <Dock />
      <Guarded of="The time strip">
        <TimeStrip
          at={looking.at}
          standing={connection === "live" ? "live" : present.ready ? "old" : "connecting"}
        />
      </Guarded>
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

/** What must be known of the picture itself: that it is old, or what a replay cannot tell. */
function Said({ stale, note, problem }: { stale: boolean; note: string | null; problem: Error | null }) {
  const [since] = useState(() => ({ at: 0 }));
  const now = useNow();
  if (!stale) since.at = now;
  if (problem)
    return (
      <div className={classes.said}>
        <Trouble problem={problem} />
      </div>
    );
  if (stale) {
    const s = Math.max(1, Math.round((now - since.at) / 1000));
    return (
      <p className={classes.said} role="status">
        ○ Not connected. This is the picture of {s} s ago; it goes on by itself when the gateway answers.
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

function Nobody() {
  return (
    <div className={classes.middle}>
      <h2>No agent has spoken yet</h2>
      <Empty command={HELLO}>
        Agents appear here with their first message or heartbeat. Let one speak, from where this gateway runs:
      </Empty>
      <Empty command="observatory demo">
        Or watch a simulated mesh at work, on its own port with its own data:
      </Empty>
    </div>
  );
}
