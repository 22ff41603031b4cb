// A line of a few figures in the size of a word; the text next to it gives its meaning.
export function Sparkline({
  values,
  width = 64,
  height = 18,
}: {
  values: readonly number[];
  width?: number;
  height?: number;
}) {
  if (values.length < 2) return <svg width={width} height={height} aria-hidden="true" />;
  const top = Math.max(...values, 1);
  const points = values.map((value, n) => {
    const x = (n / (values.length - 1)) * (width - 2) + 1;
    const y = height - 2 - (value / top) * (height - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg width={width} height={height} aria-hidden="true">
      <polygon
        points={`1,${height} ${points.join(" ")} ${width - 1},${height}`}
        fill="var(--accent-soft)"
        stroke="none"
      />
      <polyline
        points={points.join(" ")}
        fill="none"
        stroke="var(--accent)"
        strokeWidth="1.3"
        strokeLinejoin="round"
      />
    </svg>
  );
}
