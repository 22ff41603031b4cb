// The chain of thought, whole or played back. A screen reader always has the whole text; so does everyone
// with reduced motion.
import { Button, SegmentedControl } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { frames } from "~/live/frames";
import { useStill } from "~/motion";
import { useUrl } from "~/useUrl";
import { advanced, lengthOf, SPEEDS, shownAt } from "./playback";
import classes from "./Step.module.css";

export function Reasoning({ lines }: { lines: string[] }) {
  const [url, setUrl] = useUrl();
  const still = useStill();
  const [written, setWritten] = useState<number | null>(null);
  const [speed, setSpeed] = useState(1);
  const playing = url.play === "reasoning" && !still;
  const total = lengthOf(lines);
  const pace = useRef(speed);
  pace.current = speed;

  useEffect(() => {
    if (!playing) return;
    let last: number | null = null;
    let at = 0;
    setWritten((before) => {
      at = before === null || before >= total ? 0 : before;
      return at;
    });
    const paint = (now: number) => {
      if (last !== null) at = advanced(at, now - last, pace.current);
      last = now;
      setWritten(at);
      if (at >= total) {
        setWritten(null);
        setUrl({ play: null }, true);
      }
    };
    return frames.every(paint);
  }, [playing, total, setUrl]);

  if (lines.length === 0) return <p className={classes.none}>No reasoning recorded.</p>;
  const shown = written === null ? lines : shownAt(lines, written);
  const partly = written !== null;
  return (
    <>
      <div className={classes.tools}>
        {still ? (
          <span className={classes.none}>Shown whole: reduced motion is on.</span>
        ) : (
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => setUrl({ play: playing ? null : "reasoning" }, true)}
          >
            {playing ? "‖ Pause" : partly ? "▶ Resume" : "▶ Play"}
          </Button>
        )}
        {partly && (
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => {
              setWritten(null);
              setUrl({ play: null }, true);
            }}
          >
            Skip to the end
          </Button>
        )}
        {!still && (
          <SegmentedControl
            size="xs"
            aria-label="Speed"
            value={String(speed)}
            onChange={(value) => setSpeed(Number(value))}
            data={SPEEDS.map((one) => ({ value: String(one), label: `${one}×` }))}
          />
        )}
      </div>
      {partly && (
        <ol className="unseen">
          {lines.map((line, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: thoughts have no identity but their place
            <li key={n}>{line}</li>
          ))}
        </ol>
      )}
      <ol className={classes.chain} aria-hidden={partly} data-playing={playing || undefined}>
        {shown.map((line, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: thoughts have no identity but their place
          <li key={n}>{line}</li>
        ))}
      </ol>
    </>
  );
}
