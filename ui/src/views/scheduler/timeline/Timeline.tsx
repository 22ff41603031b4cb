// The past and next hours of every job on one strip: results by mark and colour, missed and upcoming runs,
// and the present. One lane per job, failing first; arrow keys move, Enter opens the job.
import { SegmentedControl } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { memo, useMemo, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import type { Timeline as Strip } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { useNow } from "~/widgets/now";
import { Loaded, Panel } from "~/widgets/Panel";
import {
  binsFor,
  type Cell,
  countsText,
  type Lane,
  lanesOf,
  ORDER,
  placeOf,
  SIGNS,
  type Spot,
  spanLabel,
  stepFrom,
  sumsOf,
  ticksOf,
  WINDOWS,
  windowOf,
} from "./strip";
import classes from "./Timeline.module.css";

export function Timeline() {
  const [url, setUrl] = useUrl();
  const hours = windowOf(url.window);
  const { ref, width } = useElementSize<HTMLDivElement>();
  const bins = binsFor(width || 1_000);
  const query = useApi(
    "/v1/jobs/timeline",
    { hours: Number(hours), bins },
    { every: 4_000, keep: true, enabled: width > 0 },
  );
  return (
    <div className={classes.box}>
      <Panel
        label="Timeline"
        title={<Legend strip={query.data} hours={hours} />}
        aside={
          <SegmentedControl
            size="xs"
            aria-label="Time window"
            data={WINDOWS.map((one) => ({ value: one, label: `± ${one} h` }))}
            value={hours}
            onChange={(next) => setUrl({ window: next === "24" ? null : next }, true)}
          />
        }
      >
        <div ref={ref} className={classes.strip} data-strip>
          <Loaded query={query} rows={4}>
            {(strip) => <Lanes strip={strip} chosen={url.job} narrow={width < 720} />}
          </Loaded>
        </div>
      </Panel>
    </div>
  );
}

/** The legend of the marks, with counts. */
function Legend({ strip, hours }: { strip: Strip | undefined; hours: string }) {
  const sums = useMemo(() => (strip ? sumsOf(lanesOf(strip)) : null), [strip]);
  return (
    <span className={classes.legend}>
      <span>Last and next {hours} h</span>
      {sums &&
        ORDER.filter((what) => what !== "late" || sums.late > 0).map((what) => (
          <span key={what} data-tone={SIGNS[what].tone} title={SIGNS[what].means}>
            <span aria-hidden>{SIGNS[what].mark}</span> {sums[what]} {SIGNS[what].word}
          </span>
        ))}
    </span>
  );
}

function Lanes({ strip, chosen, narrow }: { strip: Strip; chosen: string | undefined; narrow: boolean }) {
  const [, setUrl] = useUrl();
  const lanes = useMemo(() => lanesOf(strip), [strip]);
  const ticks = useMemo(() => ticksOf(strip, narrow ? 4 : 12), [strip, narrow]);
  const [spot, setSpot] = useState<{ job_id: string; at: number } | null>(null);
  const [shown, setShown] = useState<{ lane: Lane; cell: Cell } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const found = whereIs(lanes, spot);
  const walk = (event: React.KeyboardEvent) => {
    const next = stepFrom(lanes, found, event.key);
    if (!next) return;
    event.preventDefault();
    const lane = lanes[next.lane];
    const cell = lane?.cells[next.cell];
    if (!lane || !cell) return;
    setSpot({ job_id: lane.job_id, at: cell.at });
    box.current?.querySelector<HTMLElement>(`[data-spot="${next.lane}/${next.cell}"]`)?.focus();
  };
  if (lanes.length === 0)
    return (
      <p className={classes.none}>
        No jobs scheduled. Create one below, or:{" "}
        <code>observatory jobs add NAME --cron "0 9 * * 1-5" --to AGENT</code>
      </p>
    );
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a strip of buttons, not a set of fields */}
      <div
        className={classes.lanes}
        ref={box}
        role="group"
        aria-label="Runs by job and time; arrows move, Enter opens the job"
        onKeyDown={walk}
        onPointerLeave={() => setShown(null)}
      >
        <div className={classes.inner}>
          <div className={classes.ground} aria-hidden>
            {ticks.map(({ at, place }) => (
              <i key={at} style={{ left: `${place * 100}%` }} />
            ))}
          </div>
          {lanes.map((lane, n) => (
            <LaneRow
              key={lane.job_id}
              lane={lane}
              index={n}
              from={strip.from}
              until={strip.until}
              reached={found.lane === n ? found.cell : -1}
              chosen={chosen === lane.job_id}
              onReach={(cell) => {
                setSpot({ job_id: lane.job_id, at: cell.at });
                setShown({ lane, cell });
              }}
              onShow={(cell) => setShown({ lane, cell })}
              onOpen={() =>
                setUrl({ board: null, job: lane.job_id, edit: null, letter: null, trigger: null })
              }
            />
          ))}
          <NowLine strip={strip} />
        </div>
      </div>
      <div className={classes.axis} aria-hidden>
        {ticks.map(({ at, place, text }) => (
          <span key={at} style={{ left: `${place * 100}%` }}>
            {text}
          </span>
        ))}
      </div>
      <p className={classes.readout}>
        {shown ? (
          <>
            <b>{shown.lane.name}</b> · {spanLabel(shown.cell.at, shown.cell.until)} ·{" "}
            {countsText(shown.cell.counts, shown.cell.more)}
          </>
        ) : (
          <>
            One mark is {strip.bin_s >= 3_600 ? `${strip.bin_s / 3_600} h` : `${strip.bin_s / 60} min`} of a
            job: the worst in it, and how many.
            {strip.more && ` The ${lanes.length} newest jobs are shown.`}
          </>
        )}
      </p>
    </>
  );
}

/** The roving focus: the same job and time as before, else the first cell. */
function whereIs(lanes: readonly Lane[], spot: { job_id: string; at: number } | null): Spot {
  const lane = spot ? lanes.findIndex((one) => one.job_id === spot.job_id) : -1;
  const cell = lanes[lane]?.cells.findIndex((one) => one.at === spot?.at) ?? -1;
  if (lane >= 0 && cell >= 0) return { lane, cell };
  const first = lanes.findIndex((one) => one.cells.length > 0);
  return { lane: Math.max(0, first), cell: 0 };
}

function NowLine({ strip }: { strip: Strip }) {
  const now = useNow();
  const place = placeOf(now, strip);
  return (
    <div className={classes.over} aria-hidden>
      <div className={classes.future} style={{ left: `${place * 100}%` }} />
      <div className={classes.now} style={{ left: `${place * 100}%` }}>
        <span>now</span>
      </div>
    </div>
  );
}

interface LaneProps {
  lane: Lane;
  index: number;
  from: string;
  until: string;
  reached: number;
  chosen: boolean;
  onReach: (cell: Cell) => void;
  onShow: (cell: Cell) => void;
  onOpen: () => void;
}

/**
 * Rendered again only when its content changed: the response comes every few seconds, most lanes unchanged.
 */
const LaneRow = memo(
  function LaneRow({ lane, index, from, until, reached, chosen, onReach, onShow, onOpen }: LaneProps) {
    const length = Date.parse(until) - Date.parse(from);
    return (
      <div className={classes.lane} data-chosen={chosen || undefined}>
        <button type="button" className={classes.name} tabIndex={-1} onClick={onOpen} title={lane.name}>
          {lane.name}
          {lane.state !== "active" && <span> {lane.state}</span>}
        </button>
        <div className={classes.track}>
          {lane.cells.map((cell, n) => {
            const sign = SIGNS[cell.worst];
            const words = `${lane.name}, ${spanLabel(cell.at, cell.until)}: ${countsText(cell.counts, cell.more)}`;
            return (
              <button
                key={cell.at}
                type="button"
                className={classes.cell}
                data-spot={`${index}/${n}`}
                data-what={cell.worst}
                data-tone={sign.tone}
                tabIndex={reached === n ? 0 : -1}
                aria-label={words}
                title={words}
                style={{
                  left: `${((cell.at - Date.parse(from)) / length) * 100}%`,
                  width: `${((cell.until - cell.at) / length) * 100}%`,
                }}
                onFocus={() => onReach(cell)}
                onPointerEnter={() => onShow(cell)}
                onClick={onOpen}
              >
                {(cell.worst !== "planned" || cell.shown === 1) && <span aria-hidden>{sign.mark}</span>}
                {cell.shown > 1 && <small aria-hidden data-many={cell.shown > 99 ? "99+" : cell.shown} />}
              </button>
            );
          })}
        </div>
      </div>
    );
  },
  (before, after) =>
    before.reached === after.reached &&
    before.chosen === after.chosen &&
    before.index === after.index &&
    before.from === after.from &&
    before.until === after.until &&
    JSON.stringify(before.lane) === JSON.stringify(after.lane),
);
