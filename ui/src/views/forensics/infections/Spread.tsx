// The spread as lanes over time, one per agent: a line to each step from its source. The table below has the
// same as text, so the picture is for the eye alone.
import { useElementSize } from "@mantine/hooks";
import { plural } from "~/plural";
import type { InfectionAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import classes from "./Fact.module.css";
import { best, drawn, EVIDENCE } from "./hops";

const [LANE, TOP, MAX_LANES] = [22, 10, 14];

export function Spread({ answer, weak }: { answer: InfectionAnswer; weak: boolean }) {
  const [url, setUrl] = useUrl();
  const { ref, width } = useElementSize();
  const { lanes, dots, more } = drawn(answer, MAX_LANES, weak);
  const names = width < 520 ? 116 : 170;
  const wide = Math.max(60, width - names - 16);
  const height = TOP * 2 + Math.max(0, lanes.length - 1) * LANE;
  const x = (part: number) => names + part * wide;
  const y = (row: number) => TOP + row * LANE;
  return (
    <div ref={ref} className={classes.spread}>
      <svg width="100%" height={height} aria-hidden>
        {lanes.map(({ agent, strong }, row) => (
          <g key={agent}>
            <line x1={names} x2={names + wide} y1={y(row)} y2={y(row)} className={classes.lane} />
            <text x={0} y={y(row) + 4} className={strong ? classes.holder : classes.after}>
              {agent.length > names / 7 ? `${agent.slice(0, Math.floor(names / 7) - 1)}…` : agent}
            </text>
          </g>
        ))}
        {dots.map(({ step, x: part, row, from }) =>
          from ? (
            <path
              key={`edge ${step.sequence_number}`}
              className={step.strength === "strong" ? classes.edge : classes.thin}
              d={`M${x(from.x)} ${y(from.row)} C${(x(from.x) + x(part)) / 2} ${y(from.row)}, ${(x(from.x) + x(part)) / 2} ${y(row)}, ${x(part)} ${y(row)}`}
            />
          ) : null,
        )}
        {dots.map(({ step, x: part, row, first: reached }) => {
          const first = step.sequence_number === answer.source.sequence_number;
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: for the mouse; the table has the same as a link
            <circle
              key={step.sequence_number}
              cx={x(part)}
              cy={y(row)}
              r={first ? 6 : reached ? 5 : 2.5}
              className={first ? classes.source : step.strength === "strong" ? classes.strong : classes.weak}
              data-chosen={url.at === String(step.sequence_number) || undefined}
              onClick={() => setUrl({ at: String(step.sequence_number) }, true)}
            >
              <title>{`${step.agent_id}: ${EVIDENCE[best(step)?.kind ?? "descent"].word}, #${step.sequence_number}`}</title>
            </circle>
          );
        })}
      </svg>
      <p className={classes.note}>
        ◉ origin, ● affected, ○ downstream. Lines: how it reached each agent. Left is earlier, the first
        minute drawn widest.
        {more > 0 && ` ${plural(more, "more agent is", "more agents are")} in the list below.`}
      </p>
    </div>
  );
}
