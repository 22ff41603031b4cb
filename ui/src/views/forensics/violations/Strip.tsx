// How many when: one bar a part of the time, with its number on hover; the sum is said in words above.

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
