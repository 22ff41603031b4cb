// When it was said: bars over time. Drag over some, or choose one by keyboard, and the question is narrowed to
// that stretch; the list below follows.
import { useMemo, useRef, useState } from "react";
import { useAnswer } from "~/api/questions";
import type { TimesAnswer } from "~/protocol/openapi";
import { Empty, Shown } from "~/widgets/Panel";
import { anyTime, between, hasTimes } from "./question";
import type { Mode } from "./reading";
import classes from "./Timeline.module.css";
import { heights, moment, said, stretch, widthMs } from "./times";

interface Props {
  q: string;
  mode: Mode;
  onAsk: (q: string) => void;
}

export function Timeline({ q, mode, onAsk }: Props) {
  const asked = useAnswer("/v1/search", { q, mode, group: "time" }, { every: 10_000, keep: true });
  return (
    <Shown asked={asked} rows={3}>
      {(data) => <Bars answer={data as TimesAnswer} q={q} onAsk={onAsk} />}
    </Shown>
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
  if (!first || !last) return <Empty>There is nothing to count over time.</Empty>;
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
    <figure className={classes.times} aria-label="When it was said">
      {/* biome-ignore lint/a11y/useSemanticElements: bars are a group, not a set of fields */}
      <div
        ref={box}
        className={classes.bars}
        role="group"
        aria-label="Messages over time; arrows walk, Shift chooses several, Enter narrows"
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
          {answer.capped && ", the newest that were counted"}; drag over a stretch to narrow
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
