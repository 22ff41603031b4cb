// The last entropy scores as a line: high is varied, low is repetitive. The text next to it gives the value.
import classes from "./Sparkline.module.css";

const [WIDTH, HEIGHT] = [56, 16];

export function points(trail: readonly number[], width = WIDTH, height = HEIGHT): [number, number][] {
  const step = trail.length > 1 ? width / (trail.length - 1) : 0;
  return trail.map((score, n) => [
    trail.length > 1 ? n * step : width,
    height - 1.5 - Math.min(1, Math.max(0, score)) * (height - 3),
  ]);
}

export function Sparkline({ trail, severity }: { trail: readonly number[]; severity: string }) {
  const drawn = points(trail);
  const last = drawn.at(-1);
  return (
    <svg
      className={classes.line}
      data-severity={severity}
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      aria-hidden
    >
      {drawn.length > 1 && (
        <polyline points={drawn.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")} />
      )}
      {last && <circle cx={last[0] - 2} cy={last[1]} r={2} />}
    </svg>
  );
}
