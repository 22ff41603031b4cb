// The Canvas engine in the page. One effect feeds it from the live topic, change by change, never through
// React; the others mirror the URL into it and what the user does there back into the URL.
import { useComputedColorScheme } from "@mantine/core";
import { memo, useEffect, useRef, useState } from "react";
import { say } from "~/acts/toasts";
import { type FleetPicture, type Hit, readTheme, type Thing, Topology, wholeOf } from "~/graph";
import { live } from "~/live/connection";
import { frames } from "~/live/frames";
import { useStill } from "~/motion";
import { useUrl } from "~/useUrl";
import { Callouts } from "./Callouts";
import classes from "./FleetMap.module.css";
import { Hover } from "./Hover";
import { focusIn, focusOf, focusUrl, type Looking } from "./looking";

interface Props {
  looking: Looking;
  /** The minute replayed, once it has come. */
  replayed: FleetPicture | undefined;
  stale: boolean;
  /** Pixels that what is said above and the legend below cover. */
  above: number;
  below: number;
  peek: string | undefined;
  onMap: (map: Topology | null) => void;
}

/** `agent:writer-1` selects a node, `edge:A → B` an edge; other peeks select nothing here. */
export function thingOf(peek: string | undefined): Thing | null {
  if (peek?.startsWith("agent:")) return { kind: "node", id: peek.slice(6) };
  if (peek?.startsWith("edge:")) return { kind: "edge", id: peek.slice(5) };
  return null;
}

function peekOf(hit: Hit | Thing): string | null {
  if (hit.kind === "node" || hit.kind === "alarm") return `agent:${hit.id}`;
  if (hit.kind !== "edge") return null;
  const only = "edges" in hit && hit.edges?.length === 1 ? hit.edges[0] : hit.id;
  return `edge:${only}`;
}

export const FleetMap = memo(function FleetMap({
  looking,
  replayed,
  stale,
  above,
  below,
  peek,
  onMap,
}: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [map, setMap] = useState<Topology | null>(null);
  const [hover, setHover] = useState<Hit | null>(null);
  const [, setUrl] = useUrl();
  const calm = useStill();
  const scheme = useComputedColorScheme("dark");
  const replaying = looking.at !== null;

  useEffect(() => {
    if (!canvas.current) return;
    const reducedMotion = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const made = new Topology(canvas.current, { frames, reducedMotion, theme: readTheme(canvas.current) });
    // Beside what is drawn stands who drew it: browser tests click where it says, the bench asks its figures.
    Object.assign(canvas.current, { topology: made });
    setMap(made);
    onMap(made);
    return () => {
      made.destroy();
      setMap(null);
      onMap(null);
    };
  }, [onMap]);

  // The feed: in a replay live changes are not put, on the way back the whole picture is.
  useEffect(() => {
    if (!map || replaying) return;
    const leave = live.follow("fleet", (change) => map.put(change));
    const picture = live.picture("fleet");
    if (picture?.ready) map.put(wholeOf(picture));
    return leave;
  }, [map, replaying]);
  useEffect(() => {
    if (map && replaying && replayed) map.show(replayed);
  }, [map, replaying, replayed]);

  useEffect(() => {
    if (!map) return;
    map.layer = looking.layer;
    map.grouping = looking.by;
    map.level = looking.level ?? "auto";
    map.find(looking.find);
    map.hide(looking.hide);
  }, [map, looking.layer, looking.by, looking.level, looking.find, looking.hide]);
  useEffect(() => {
    if (map) map.focus = focusOf({ cluster: looking.cluster, group: looking.group });
  }, [map, looking.cluster, looking.group]);
  useEffect(() => {
    map?.select(thingOf(peek), { reveal: true });
  }, [map, peek]);
  useEffect(() => {
    if (map) map.insets = { top: 12 + above, right: 12, bottom: 12 + below, left: 12 };
  }, [map, above, below]);
  useEffect(() => {
    if (map) map.stale = stale;
  }, [map, stale]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the scheme decides the tokens the theme reads
  useEffect(() => {
    if (map && canvas.current) map.theme = readTheme(canvas.current);
  }, [map, scheme]);
  useEffect(() => {
    if (map) map.reducedMotion = calm ?? false;
  }, [map, calm]);

  useEffect(() => {
    if (!map) return;
    const offs = [
      map.on("hover", setHover),
      map.on("click", (hit) => {
        if (hit?.kind === "group") {
          // Far off a group is the thing itself; near, its ground is just ground.
          // What is drilled into is seen: a coarser level that was pinned gives way.
          const to = focusIn(hit.id);
          if (to && map.shownLevel !== "agent") setUrl({ ...focusUrl(to), level: null });
          setHover(null);
          return;
        }
        setUrl({ peek: hit && peekOf(hit) });
      }),
      map.on("open", (hit) => {
        const to = peekOf(hit);
        if (to) setUrl({ peek: to });
      }),
      map.on("focus", (focus) => setUrl(focusUrl(focus))),
      map.on("level", (level) => setUrl({ level: level === "auto" ? null : level }, true)),
      map.on("trouble", (text) => {
        say({ tone: "alert", text });
        setUrl({ layer: map.layer === "logical" ? null : map.layer }, true);
      }),
      map.on("select", (thing) => setUrl({ peek: thing && peekOf(thing) }, true)),
    ];
    return () => {
      for (const off of offs) off();
    };
  }, [map, setUrl]);

  return (
    <div className={classes.stage} data-stale={stale || undefined}>
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: the engine takes its own keys */}
      <canvas
        ref={canvas}
        className={classes.canvas}
        role="application"
        aria-label="Map of the fleet. Arrow keys go from agent to agent, Enter opens, plus and minus zoom, 0 shows all. The list view holds the same."
      />
      {map && <Callouts map={map} quiet={replaying} />}
      {map && hover && <Hover map={map} hit={hover} within={canvas.current} />}
    </div>
  );
});
