// uPlot in React: created once for its series, updated by setData, sized by its box, coloured by the page's
// tokens (again when the scheme changes). The plot itself is for the eye; `label` describes it.
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock } from "../strip";
import classes from "./Plot.module.css";

export interface Line {
  name: string;
  /** A token of app.css, e.g. `--accent`. */
  token: string;
  look: "area" | "line" | "bars";
  dash?: number[];
}

export interface Hovered {
  index: number;
}

interface Props {
  data: uPlot.AlignedData;
  lines: readonly Line[];
  label: string;
  /** Plots with the same name share their cursor. */
  together?: string;
  hovered?: (at: Hovered | null) => void;
  timed?: boolean;
  figure: (value: number) => string;
}

function token(box: Element, name: string): string {
  return getComputedStyle(box).getPropertyValue(name).trim();
}

/** `:15` where marks are seconds apart, else `05:30`. */
function timeOf(ms: number, apartS: number): string {
  return apartS < 60 ? `:${String(new Date(ms).getSeconds()).padStart(2, "0")}` : clock(ms);
}

function seriesOf(box: Element, line: Line): uPlot.Series {
  const stroke = token(box, line.token);
  const common = { label: line.name, stroke, width: 1.5, points: { show: false } };
  if (line.look === "bars") {
    const paths = uPlot.paths.bars?.({ size: [0.7, 12, 1] });
    return { ...common, width: 0, fill: stroke, paths };
  }
  return line.look === "area"
    ? { ...common, fill: `color-mix(in srgb, ${stroke} 14%, transparent)`, dash: line.dash }
    : { ...common, dash: line.dash };
}

export function Plot({ data, lines, label, together, hovered, timed = true, figure }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ data, hovered, figure });
  latest.current = { data, hovered, figure };
  const scheme = useComputedColorScheme("dark");
  const drawn = JSON.stringify(lines);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the scheme decides the tokens read here
  useEffect(() => {
    const at = box.current;
    if (!at) return;
    const grid = { stroke: token(at, "--hairline"), width: 1 };
    const text = { stroke: token(at, "--text-3"), font: "11px system-ui", ticks: { show: false }, grid };
    const made = new uPlot(
      {
        width: Math.max(40, at.clientWidth),
        height: Math.max(30, at.clientHeight),
        legend: { show: false },
        padding: [6, 6, timed ? 0 : 7, 0],
        cursor: {
          y: false,
          points: { size: 5 },
          drag: { x: false, y: false },
          sync: together ? { key: together } : undefined,
        },
        scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          {
            ...text,
            show: timed,
            size: 20,
            space: 60,
            values: (_, splits) => splits.map((at) => timeOf(at * 1000, (splits[1] ?? 0) - (splits[0] ?? 0))),
          },
          {
            ...text,
            size: 34,
            space: 22,
            values: (_, splits) => splits.map((value) => latest.current.figure(value)),
          },
        ],
        series: [{}, ...(JSON.parse(drawn) as Line[]).map((line) => seriesOf(at, line))],
        hooks: {
          setCursor: [
            ({ cursor }) => {
              const index = cursor.idx;
              latest.current.hovered?.(index === null || index === undefined ? null : { index });
            },
          ],
        },
      },
      latest.current.data,
      at,
    );
    plot.current = made;
    const sized = new ResizeObserver(() =>
      made.setSize({ width: Math.max(40, at.clientWidth), height: Math.max(30, at.clientHeight) }),
    );
    sized.observe(at);
    return () => {
      sized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [drawn, together, timed, scheme]);

  useEffect(() => plot.current?.setData(data), [data]);
  return <div ref={box} className={classes.plot} role="img" aria-label={label} />;
}
