// The time strip: drag or step to a minute of the last hours, with a way back to live. Traffic is drawn
// faintly along it, alerts as marks. The minute is in the URL; while dragging only the last position is
// fetched.
import { Button, SegmentedControl } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import { useUrl } from "~/useUrl";
import { useNow } from "~/widgets/now";
import {
  atOf,
  backFrom,
  backOf,
  REACHES,
  type Reach,
  replayLabel,
  shareOf,
  stepped,
  stripAt,
  ticks,
} from "./strip";
import classes from "./TimeStrip.module.css";

const SETTLE_MS = 120;
const REACH_WORDS: Record<Reach, string> = { 60: "1 h", 180: "3 h", 720: "12 h" };

/** The label of the present picture: live, loading, or old. */
export type FeedState = "live" | "connecting" | "old";
const STANDING: Record<FeedState, { mark: string; words: string }> = {
  live: { mark: "●", words: "live" },
  connecting: { mark: "○", words: "connecting" },
  old: { mark: "○", words: "not connected" },
};

export function TimeStrip({ at, standing }: { at: string | null; standing: FeedState }) {
  const [search, setUrl] = useUrl();
  const now = useNow();
  const reach = REACHES.find((one) => String(one) === search.reach) ?? 60;
  const strip = stripAt(now, reach);
  const [dragged, setDragged] = useState<number | null>(null);
  const track = useRef<HTMLDivElement>(null);
  const back = Math.min(reach, dragged ?? backFrom(at, strip));
  const shownAt = dragged === null ? at : atOf(dragged, strip);
  const stripRef = useRef(strip);
  stripRef.current = strip;

  useEffect(() => {
    if (dragged === null) return;
    const timer = setTimeout(() => setUrl({ at: atOf(dragged, stripRef.current) }, true), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [dragged, setUrl]);

  const backAt = (event: React.PointerEvent) => {
    const box = track.current?.getBoundingClientRect();
    return box ? backOf((event.clientX - box.left) / box.width, strip) : 0;
  };
  const take = (event: React.PointerEvent) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setUrl({ at: atOf(backAt(event), strip) });
    setDragged(backAt(event));
  };
  const drop = (event: React.PointerEvent) => {
    if (dragged === null) return;
    setUrl({ at: atOf(backAt(event), strip) }, true);
    setDragged(null);
  };
  const step = (event: React.KeyboardEvent) => {
    const to = stepped(event.key, back, reach);
    if (to === null) return;
    event.preventDefault();
    setUrl({ at: atOf(to, strip) }, true);
  };
  const words = shownAt === null ? STANDING[standing].words : replayLabel(shownAt, now);
  return (
    <section className={classes.strip} data-replaying={shownAt !== null || undefined} aria-label="Time">
      <div className={classes.said}>
        <span className={classes.words}>
          <span aria-hidden className={classes.dot} data-standing={standing}>
            {shownAt === null ? STANDING[standing].mark : "◷"}
          </span>
          {words}
        </span>
        {shownAt !== null && (
          <Button size="compact-xs" onClick={() => setUrl({ at: null })}>
            Back to live
          </Button>
        )}
      </div>
      <div
        ref={track}
        className={classes.track}
        role="slider"
        tabIndex={0}
        aria-label="Replay: minutes back"
        aria-valuemin={-reach}
        aria-valuemax={0}
        aria-valuenow={-back}
        aria-valuetext={words}
        onKeyDown={step}
        onPointerDown={take}
        onPointerMove={(event) => dragged !== null && setDragged(backAt(event))}
        onPointerUp={drop}
        onPointerCancel={() => setDragged(null)}
      >
        <Traffic reach={reach} strip={strip} />
        {ticks(strip).map((tick) => (
          <span key={tick.text} className={classes.tick} style={{ left: `${tick.share * 100}%` }} aria-hidden>
            {tick.text}
          </span>
        ))}
        <span className={classes.thumb} style={{ left: `${(1 - back / reach) * 100}%` }} aria-hidden />
      </div>
      <SegmentedControl
        size="xs"
        aria-label="Time strip range"
        data={REACHES.map((one) => ({ value: String(one), label: REACH_WORDS[one] }))}
        value={String(reach)}
        onChange={(value) => setUrl({ reach: value === "60" ? null : value }, true)}
      />
    </section>
  );
}

interface Bar {
  ms: number;
  value: number;
}

/**
 * Messages per minute for an hour; beyond it the spend, the only figure available by minute or hour in one
 * response.
 */
function Traffic({ reach, strip }: { reach: Reach; strip: { end: number; reach: number } }) {
  const hour = useApi(
    "/v1/fleet/throughput",
    { window: "1h" },
    { every: 15_000, keep: true, enabled: reach === 60 },
  );
  const minute = Math.floor(strip.end / 600_000) * 600_000 - reach * 60_000;
  const since = new Date(Math.max(minute, strip.end - (reach === 180 ? 179 : reach) * 60_000)).toISOString();
  const heat = useApi(
    "/v1/costs/heatmap",
    { by: "cluster", bucket: reach === 180 ? "minute" : "hour", since, limit: 1 },
    { every: 60_000, keep: true, enabled: reach !== 60 },
  );
  const alerts = useApi("/v1/alerts", { limit: 200 }, { every: 15_000, keep: true });
  const bars: Bar[] =
    reach === 60
      ? (hour.data?.points ?? []).map((point) => ({ ms: Date.parse(point.at), value: point.messages }))
      : (heat.data?.columns ?? []).map((column, n) => ({
          ms: Date.parse(column),
          value: heat.data?.totals[n] ?? 0,
        }));
  const most = Math.max(1e-9, ...bars.map((bar) => bar.value));
  const width = (reach === 720 ? 60 : 1) / reach;
  const marks = new Map<number, { share: number; texts: string[]; bad: boolean }>();
  for (const alert of alerts.data?.items ?? []) {
    const share = shareOf(Date.parse(alert.at), strip);
    if (share === null) continue;
    const slot = Math.round(share * 240);
    const mark = marks.get(slot) ?? { share, texts: [], bad: false };
    mark.texts.push(alert.text);
    mark.bad ||= alert.severity === "critical" || alert.severity === "error";
    marks.set(slot, mark);
  }
  return (
    <>
      <svg className={classes.bars} viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden>
        <title>{reach === 60 ? "messages per minute" : "spend"}</title>
        {bars.map((bar) => {
          const share = shareOf(bar.ms, strip);
          const height = (bar.value / most) * 100;
          return share === null || height === 0 ? null : (
            <rect
              key={bar.ms}
              x={share * 1000}
              width={Math.max(1, width * 1000 - 1.5)}
              y={100 - height}
              height={height}
            />
          );
        })}
      </svg>
      {[...marks].map(([slot, mark]) => (
        <span
          key={slot}
          className={classes.mark}
          data-bad={mark.bad || undefined}
          style={{ left: `${mark.share * 100}%` }}
          title={mark.texts.slice(0, 5).join("\n")}
          aria-hidden
        >
          !
        </span>
      ))}
    </>
  );
}
