// Results over time, as bars. Drag over some, or select by keyboard, to narrow the query to that range; the
// list below follows.
import { useMemo, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import type { TimesAnswer } from "~/protocol/openapi";
import { Empty, Loaded } from "~/widgets/Panel";
import { anyTime, between, hasTimes } from "./queryPieces";
import type { Mode } from "./queryText";
import classes from "./Timeline.module.css";
import { heights, moment, said, stretch, widthMs } from "./times";

interface Props {
  q: string;
  mode: Mode;
  onAsk: (q: string) => void;
}

export function Timeline({ q, mode, onAsk }: Props) {
  const request = useApi("/v1/search", { q, mode, group: "time" }, { every: 10_000, keep: true });
  return (
    <Loaded query={request} rows={3}>
      {(data) => <Bars answer={data as TimesAnswer} q={q} onAsk={onAsk} />}
    </Loaded>
  );
}

function Bars({ answer, q, onAsk }: { answer: TimesAnswer; q: string; onAsk: (q: string) => void }) {
  const bins = answer.items;
  const tall = useMemo(() => heights(bins), [bins]);
  const [from, setFrom] = useState<number | null>(null);
  const [to, setTo] = useState<number | null>(null);
  const [reached, setReached] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const first = bins[0];
  const last = bins.at(-1);
  if (!first || !last) return <Empty>No messages in this range.</Empty>;
  const span = Date.parse(last.to) - Date.parse(first.from);
  const width = widthMs(first);
  const at = Math.min(reached ?? bins.length - 1, bins.length - 1);
  const low = Math.min(from ?? -1, to ?? -1);
  const high = Math.max(from ?? -1, to ?? -1);
  const narrow = (a: number, b: number) => {
    const chosen = stretch(bins, a, b);
    setFrom(null);
    setTo(null);
    if (chosen) onAsk(between(q, chosen.since, chosen.until));
  };
  const walk = (event: React.KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -bins.length, End: bins.length }[event.key];
    if (by !== undefined) {
      const next = Math.max(0, Math.min(bins.length - 1, at + by));
      if (event.shiftKey) {
        setFrom(from ?? at);
        setTo(next);
      } else {
        setFrom(null);
        setTo(null);
      }
      setReached(next);
      box.current?.querySelector<HTMLElement>(`[data-n="${next}"]`)?.focus();
    } else if (event.key === "Enter" || event.key === " ") narrow(from ?? at, to ?? at);
    else if (event.key === "Escape" && from !== null) {
      setFrom(null);
      setTo(null);
    } else return;
    event.preventDefault();
  };
  return (
    <figure className={classes.times} aria-label="Messages over time">
      {/* biome-ignore lint/a11y/useSemanticElements: bars are a group, not a set of fields */}
      <div
        ref={box}
        className={classes.bars}
        role="group"
        aria-label="Messages over time; arrows move, Shift selects a range, Enter filters"
        onKeyDown={walk}
        onPointerUp={() => from !== null && to !== null && narrow(from, to)}
        onPointerLeave={() => {
          setFrom(null);
          setTo(null);
        }}
      >
        {bins.map((bin, n) => (
          <button
            key={bin.from}
            type="button"
            data-n={n}
            className={classes.bar}
            data-chosen={(n >= low && n <= high && low >= 0) || undefined}
            tabIndex={n === at ? 0 : -1}
            title={said(bin, span)}
            aria-label={said(bin, span)}
            onFocus={() => setReached(n)}
            onPointerDown={() => {
              setFrom(n);
              setTo(n);
            }}
            onPointerEnter={(event) => {
              if (from !== null && event.buttons === 1) setTo(n);
            }}
          >
            <span style={{ height: `${(tall[n] ?? 0) * 100}%` }} />
          </button>
        ))}
      </div>
      <figcaption className={classes.axis}>
        <time dateTime={first.from}>{moment(first.from, width, span)}</time>
        <span>
          {bins.reduce((sum, bin) => sum + bin.count, 0).toLocaleString("en")} messages
          {answer.capped && ", counted over the newest"}; drag to select a range
          {hasTimes(q) && (
            <>
              {" · "}
              <button type="button" className={classes.wide} onClick={() => onAsk(anyTime(q))}>
                any time
              </button>
            </>
          )}
        </span>
        <time dateTime={last.to}>{moment(last.to, width, span)}</time>
      </figcaption>
    </figure>
  );
}
