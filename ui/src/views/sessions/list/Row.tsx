// One session of the table; the same cells become a card on a narrow screen. Rendered again only when its
// record changed: with a thousand live sessions, an unchanged row must cost nothing.
// biome-ignore-all lint/a11y/useSemanticElements: a virtualiser places the rows, which a <tr> does not allow
// biome-ignore-all lint/a11y/useFocusableInteractive: the actions of a cell are buttons or links
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { noun, plural } from "~/plural";
import { exact } from "~/widgets/clock";
import { money, short, span } from "~/widgets/format";
import { useNow } from "~/widgets/now";
import { CapBar } from "./CapBar";
import { Sparkline } from "./Sparkline";
import { Status } from "./Status";
import { capState, goalOf, SEVERITIES, type SessionRow, whyStuck } from "./session";
import classes from "./Table.module.css";

export interface RowActs {
  /** Moves the cursor there; `peek` also opens the side panel. */
  onPoint: (id: string, peek: boolean) => void;
  onChoose: (id: string) => void;
}

interface RowProps extends RowActs {
  row: SessionRow;
  index: number;
  offset: number;
  height: number;
  atCursor: boolean;
  /** The one row reachable by the Tab key. */
  tabbed: boolean;
  chosen: boolean;
}

export const Row = memo(function Row({
  row,
  index,
  offset,
  height,
  atCursor,
  tabbed,
  chosen,
  onPoint,
  onChoose,
}: RowProps) {
  const goal = goalOf(row);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the view's keys act on the row under the cursor
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-current={atCursor || undefined}
      tabIndex={tabbed ? 0 : -1}
      data-session={row.session_id}
      data-status={row.status}
      className={classes.row}
      style={{ transform: `translateY(${offset}px)`, height }}
      onFocus={(event) => event.target === event.currentTarget && !atCursor && onPoint(row.session_id, false)}
      onClick={(event) =>
        !(event.target as Element).closest("a, input, button, label") && onPoint(row.session_id, true)
      }
    >
      <div role="cell" className={classes.choose}>
        <input
          type="checkbox"
          aria-label={`select for comparison: ${goal}`}
          checked={chosen}
          onChange={() => onChoose(row.session_id)}
        />
      </div>
      <div role="cell" className={classes.status}>
        <Status status={row.status} />
      </div>
      <div role="cell" className={classes.goal}>
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: row.session_id }}
          title={`${goal}\n${row.session_id}`}
          tabIndex={tabbed ? 0 : -1}
          data-unknown={row.goal === null || undefined}
        >
          {goal}
        </Link>
      </div>
      <div role="cell" className={classes.agents} title={agents(row)}>
        <b>{row.agents_count}</b>
        <span className={classes.unit}> {noun(row.agents_count, "agent")}</span>{" "}
        <span>{row.agent_names.join(", ")}</span>
      </div>
      <div role="cell" className={classes.steps} title={plural(row.messages, "step")}>
        {short(row.messages)}
        <span className={classes.unit}> {noun(row.messages, "step")}</span>
      </div>
      <Entropy row={row} />
      <div role="cell" className={classes.confidence}>
        {row.confidence === null ? (
          <span className={classes.faint}>–</span>
        ) : (
          <span title="last reported confidence">
            {Math.round(row.confidence * 100)} %
            {row.confidence < 0.5 && <span className={classes.low}> low</span>}
          </span>
        )}
      </div>
      <Cost row={row} />
      <div role="cell" className={classes.age}>
        <Age since={row.started_at} />
      </div>
    </div>
  );
});

function Entropy({ row }: { row: SessionRow }) {
  const severity = SEVERITIES[row.severity];
  const score = row.entropy_score;
  const why = row.stuck ? `; stuck: ${whyStuck(row.stuck_reason)}` : "";
  return (
    <div
      role="cell"
      className={classes.entropy}
      title={
        score === null ? "too few steps for a score" : `entropy ${score.toFixed(2)}: ${severity.means}${why}`
      }
    >
      <Sparkline trail={row.entropy_trail} severity={row.severity} />
      <span>{score === null ? "–" : score.toFixed(2)}</span>
      {score !== null && <span data-tone={severity.tone}>{severity.word}</span>}
    </div>
  );
}

function Cost({ row }: { row: SessionRow }) {
  const { cap, cost } = row;
  const reached = capState(cap);
  return (
    <div role="cell" className={classes.cost}>
      <span className={classes.sum}>{money(cost)}</span>
      {cap ? (
        <>
          <CapBar spent={cap.spent} soft={cap.soft} hard={cap.hard} label={`${cap.scope} budget`} />
          <span className={classes.share} data-reached={reached}>
            {reached === "hard" ? "over" : `${Math.round(cap.share * 100)} %`} {OF[cap.scope]}
          </span>
        </>
      ) : (
        <span className={classes.faint}>no cap</span>
      )}
    </div>
  );
}

function Age({ since }: { since: string }) {
  const now = useNow();
  return (
    <time dateTime={since} title={`started ${exact(since)}`}>
      {span(now - Date.parse(since))}
    </time>
  );
}

/** The cap's scope: most sessions are limited by a shared one. */
const OF = {
  tenant: "of tenant cap",
  session: "of session cap",
  cluster: "of cluster cap",
  agent: "of agent cap",
};

function agents(row: SessionRow): string {
  const more = row.agents_count - row.agent_names.length;
  return `${row.agent_names.join(", ")}${more > 0 && row.agent_names.length > 0 ? ` and ${more} more` : ""}`;
}
