// The Canvas engine in the page. One effect feeds it from the live topic, change by change, never through
// React; the others sync the URL into it and user actions there back into the URL.
import { useComputedColorScheme } from "@mantine/core";
import { memo, useEffect, useRef, useState } from "react";
import { showToast } from "~/commands/toasts";
import { type FleetPicture, type Hit, readTheme, type Thing, Topology, wholeOf } from "~/graph";
import { live } from "~/live/connection";
import { frames } from "~/live/frames";
import { useStill } from "~/motion";
import { useUrl } from "~/useUrl";
import { Callouts } from "./Callouts";
import classes from "./FleetMap.module.css";
import { Hover } from "./Hover";
import { type FleetViewState, focusIn, focusOf, focusUrl } from "./viewState";

interface Props {
  looking: FleetViewState;
  /** The replayed minute, once loaded. */
  replayed: FleetPicture | undefined;
  stale: boolean;
  /** Pixels covered by the note above and the legend below. */
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
    // The engine is attached to its element: browser tests ask it where to click, the benchmark reads its
    // figures.
    Object.assign(canvas.current, { topology: made });
    setMap(made);
    onMap(made);
    return () => {
      made.destroy();
      setMap(null);
      onMap(null);
    };
  }, [onMap]);

  // The feed: during a replay live changes are skipped; on return the whole picture is set again.
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
          // Zoomed out, a group is an object of its own; zoomed in, its ground is just ground. What is
          // drilled into must be visible: a pinned coarser level is unpinned.
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
        showToast({ tone: "alert", text });
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
        aria-label="Map of the fleet. Arrow keys go from agent to agent, Enter opens, plus and minus zoom, 0 shows all. The list view has the same content."
      />
      {map && <Callouts map={map} quiet={replaying} />}
      {map && hover && <Hover map={map} hit={hover} within={canvas.current} />}
    </div>
  );
});
