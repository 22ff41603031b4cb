// A distribution as bars with count and share as text, the most frequent first.
import classes from "./Detail.module.css";

export interface Bar {
  name: string;
  count: number;
  /** A mark and word next to the name, e.g. a version's status. */
  note?: React.ReactNode;
  tone?: string;
  run?: () => void;
}

const MAX_BARS = 12;

export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const sum = bars.reduce((total, bar) => total + bar.count, 0);
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  return (
    <ul className={classes.bars} aria-label={label}>
      {bars.slice(0, MAX_BARS).map((bar) => (
        <li key={bar.name} title={`${bar.name}: ${bar.count} of ${sum}`}>
          <span className={classes.barName}>
            {bar.run ? (
              <button type="button" className={classes.link} onClick={bar.run}>
                {bar.name}
              </button>
            ) : (
              bar.name
            )}
            {bar.note && <> {bar.note}</>}
          </span>
          <span className={classes.barCount}>
            {bar.count}{" "}
            <span className={classes.faint}>{sum > 0 ? Math.round((bar.count / sum) * 100) : 0} %</span>
          </span>
          <span className={classes.track} aria-hidden>
            <span data-tone={bar.tone} style={{ width: `${(bar.count / most) * 100}%` }} />
          </span>
        </li>
      ))}
      {bars.length > MAX_BARS && <li className={classes.faint}>and {bars.length - MAX_BARS} more</li>}
    </ul>
  );
}
