// Throughput of the last 60 s or hour: messages above, failures and violations below on a scale of their own,
// because next to thousands of messages three failures are a flat line.
import { SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { short } from "~/widgets/format";
import { Loaded } from "~/widgets/Panel";
import { type Hovered, type Line, Plot } from "./Plot";
import classes from "./Throughput.module.css";

type Window = "60s" | "1h";
type Point = { at: string; messages: number; failures: number; violations: number };

const FLOW: readonly Line[] = [{ name: "messages", token: "--accent", look: "area" }];
const WRONG: readonly Line[] = [
  { name: "failures", token: "--alert", look: "bars" },
  { name: "violations", token: "--violation", look: "line", dash: [3, 3] },
];

export function Throughput() {
  const [search] = useUrl();
  const window: Window = search.window === "1h" ? "1h" : "60s";
  const query = useApi(
    "/v1/fleet/throughput",
    { window },
    { every: window === "60s" ? 1_000 : 10_000, keep: true },
  );
  return (
    <div className={classes.box}>
      <Loaded query={query}>{(answer) => <Figure {...answer} />}</Loaded>
    </div>
  );
}

interface FigureProps {
  window: Window;
  rate_per_s: number;
  messages: number;
  failures: number;
  violations: number;
  points: Point[];
}

function Figure({ window, rate_per_s, messages, failures, violations, points }: FigureProps) {
  const [, setUrl] = useUrl();
  const [hovered, setHovered] = useState<Hovered | null>(null);
  // The last point is still filling: drawn, it would look like a drop at the end of every minute.
  const whole = useMemo(() => (points.length > 1 ? points.slice(0, -1) : points), [points]);
  const columns = useMemo(() => {
    const at = whole.map((point) => Date.parse(point.at) / 1000);
    const of = (name: "messages" | "failures" | "violations") => whole.map((point) => point[name]);
    return {
      flow: [at, of("messages")] as [number[], number[]],
      wrong: [at, of("failures"), of("violations")] as [number[], number[], number[]],
    };
  }, [whole]);
  const span = window === "60s" ? "60 s" : "1 h";
  const unit = window === "60s" ? "per second" : "per minute";
  const point = hovered ? whole[hovered.index] : undefined;
  const sums = point ?? { messages, failures, violations };
  const sentence = `${short(rate_per_s)} messages per second now; in the last ${window === "60s" ? "60 seconds" : "hour"} ${messages} messages, ${failures} failures, ${violations} violations`;
  return (
    <>
      <div className={classes.plots}>
        <Plot
          data={columns.flow}
          lines={FLOW}
          label={sentence}
          together="throughput"
          hovered={setHovered}
          figure={short}
          timed={false}
        />
        <Plot
          data={columns.wrong}
          lines={WRONG}
          label={`failures and schema violations ${unit}`}
          together="throughput"
          hovered={setHovered}
          figure={(value) => (Number.isInteger(value) ? short(value) : "")}
        />
      </div>
      <dl
        className={classes.legend}
        title={point ? exact(point.at) : `sums of the last ${span}; the curve is ${unit}`}
      >
        <div data-line="messages">
          <dt>messages</dt>
          <dd title={String(sums.messages)}>{short(sums.messages)}</dd>
        </div>
        <div data-line="failures">
          <dt>failures</dt>
          <dd>{short(sums.failures)}</dd>
        </div>
        <div data-line="violations">
          <dt>violations</dt>
          <dd>{short(sums.violations)}</dd>
        </div>
      </dl>
      <div className={classes.when}>
        <span>{point ? exact(point.at) : `sums of ${span}, curve ${unit}`}</span>
        <SegmentedControl
          size="xs"
          aria-label="Throughput range"
          data={[
            { value: "60s", label: "60 s" },
            { value: "1h", label: "1 h" },
          ]}
          value={window}
          onChange={(value) => setUrl({ window: value === "60s" ? null : value }, true)}
        />
      </div>
    </>
  );
}
