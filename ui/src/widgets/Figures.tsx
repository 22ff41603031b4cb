// Times, money and ids in a line of text: short, with the exact value on hover.
import { CopyButton, Tooltip } from "@mantine/core";
import { exact } from "./clock";
import classes from "./Figures.module.css";
import { ago, money, span } from "./format";
import { useNow } from "./now";

export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span className={classes.faint}>–</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at, now)}
    </time>
  );
}

/** Time left until a deadline, or that it has passed. */
export function Left({ until }: { until: string }) {
  const now = useNow();
  const left = Date.parse(until) - now;
  return (
    <time dateTime={until} title={exact(until)} className={left < 60_000 ? classes.urgent : undefined}>
      {left <= 0 ? "past deadline" : `${span(left)} left`}
    </time>
  );
}

export function Money({ dollars }: { dollars: number | null | undefined }) {
  if (dollars === null || dollars === undefined) return <span className={classes.faint}>–</span>;
  return <span title={`${dollars} USD`}>{money(dollars)}</span>;
}

/** An id or hash: shortened in the middle, whole on hover, copied by a click. */
export function Id({ id, length = 14 }: { id: string; length?: number }) {
  const half = Math.floor(length / 2);
  const text = id.length <= length + 3 ? id : `${id.slice(0, half + 1)}…${id.slice(-half)}`;
  return (
    <CopyButton value={id}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "copied" : `${id} · click to copy`} openDelay={400}>
          <button type="button" className={classes.id} onClick={copy}>
            <span className="unseen">copy </span>
            {text}
          </button>
        </Tooltip>
      )}
    </CopyButton>
  );
}
