// Counts over time: one bar per interval, with its number on hover; the total is in the text above.

import { clockToSecond } from "~/widgets/clock";
import { partWords } from "./spans";
import classes from "./Violations.module.css";

export function Strip({
  counts,
  since,
  bucket_s,
}: {
  counts: readonly number[];
  since: string;
  bucket_s: number;
}) {
  const most = Math.max(...counts, 1);
  return (
    <figure className={classes.strip}>
      <div className={classes.bars} aria-hidden>
        {counts.map((count, n) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: a part of the time is its place
            key={n}
            title={partWords(n, count, since, bucket_s)}
            style={{ height: `${count > 0 ? Math.max(6, (count / most) * 100) : 0}%` }}
          />
        ))}
      </div>
      <figcaption>
        {clockToSecond(since)} to now; at most {most} in{" "}
        {bucket_s >= 120 ? `${Math.round(bucket_s / 60)} minutes` : `${Math.round(bucket_s)} seconds`}
      </figcaption>
    </figure>
  );
}
