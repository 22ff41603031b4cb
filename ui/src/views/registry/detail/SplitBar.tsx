// The split as a stacked bar. While editing, the borders between neighbours are handles: dragged, or moved by
// arrow keys; what one side gains the other loses.
import { useRef } from "react";
import { type Draft, moved, percent, plain } from "../weights";
import classes from "./Detail.module.css";

interface Part {
  target: string;
  share: number;
}

interface Props {
  label: string;
  parts: readonly Part[];
  draft?: Draft;
  onMove?: (draft: Draft) => void;
}

export function SplitBar({ label, parts, draft, onMove }: Props) {
  const bar = useRef<HTMLDivElement>(null);
  const from = useRef<{ x: number; draft: Draft } | null>(null);
  const sum = Object.values(draft ?? {}).reduce((total, text) => total + (Number(text) || 0), 0);
  const drag = (event: React.PointerEvent, left: string, right: string) => {
    if (!from.current || !onMove || !bar.current) return;
    const by = ((event.clientX - from.current.x) / bar.current.clientWidth) * sum;
    onMove(moved(from.current.draft, left, right, Math.round(by)));
  };
  let edge = 0;
  return (
    <figure className={classes.split} aria-label={label}>
      <div className={classes.splitBar} ref={bar}>
        {parts.map((part, n) => (
          <span
            key={part.target}
            className={classes.splitPart}
            data-n={n % 6}
            style={{ flexGrow: part.share }}
            title={`${plain(part.target)}: ${percent(part.share)}`}
          />
        ))}
        {onMove &&
          draft &&
          parts.slice(0, -1).map((part, n) => {
            const right = parts[n + 1]?.target ?? "";
            edge += part.share;
            const at = Math.round(edge * 100);
            return (
              <span
                key={part.target}
                className={classes.handle}
                style={{ left: `${edge * 100}%` }}
                role="slider"
                tabIndex={0}
                aria-label={`Border between ${plain(part.target)} and ${plain(right)}`}
                aria-valuemin={0}
                aria-valuemax={100}
                aria-valuenow={at}
                aria-valuetext={`${plain(part.target)} ${percent(part.share)}, ${plain(right)} ${percent(parts[n + 1]?.share ?? 0)}`}
                onPointerDown={(event) => {
                  event.currentTarget.setPointerCapture(event.pointerId);
                  from.current = { x: event.clientX, draft };
                }}
                onPointerMove={(event) => drag(event, part.target, right)}
                onPointerUp={() => {
                  from.current = null;
                }}
                onKeyDown={(event) => {
                  const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
                  if (by === undefined) return;
                  event.preventDefault();
                  onMove(moved(draft, part.target, right, (by / 100) * sum));
                }}
              />
            );
          })}
      </div>
      <figcaption className={classes.legend}>
        {parts.map((part, n) => (
          <span key={part.target} title={part.target}>
            <i data-n={n % 6} aria-hidden /> {plain(part.target)} {percent(part.share)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
