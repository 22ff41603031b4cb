// The inbox list: kind, title, agent, risk, time left. Each row is a link to itself.
import { Link } from "@tanstack/react-router";
import type { WaitingCounts, WaitingItem } from "~/protocol/openapi";
import { Ago, Left } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty } from "~/widgets/Panel";
import classes from "./Inbox.module.css";
import { nameOf } from "./order";

export const KINDS = {
  gate: { mark: "‖", word: "gate", tone: "blocked" },
  decision: { mark: "?", word: "decision", tone: "active" },
  review: { mark: "≈", word: "review", tone: "idle" },
} as const;
export const RISKS = { low: "idle", medium: "blocked", high: "violation", critical: "alert" } as const;

export function Kinds({
  counts,
  kind,
  choose,
}: {
  counts: WaitingCounts;
  kind: string | undefined;
  choose: (kind: string | null) => void;
}) {
  const all = [
    [null, "All", counts.total],
    ["gate", "Gates", counts.gates],
    ["decision", "Decisions", counts.decisions],
    ["review", "Needs review", counts.reviews],
  ] as const;
  return (
    <div className={classes.kinds}>
      {all.map(([name, word, count]) => (
        <button
          key={word}
          type="button"
          aria-pressed={(kind ?? null) === name}
          onClick={() => choose(name)}
          className={classes.kind}
        >
          {word} <span className={classes.faint}>{count}</span>
        </button>
      ))}
    </div>
  );
}

export function ItemList({ items, chosen }: { items: WaitingItem[]; chosen: string | undefined }) {
  if (items.length === 0) return <Empty>Nothing of this kind is pending.</Empty>;
  return (
    <ul className={classes.items}>
      {items.map((item) => {
        const name = nameOf(item);
        const { mark, word, tone } = KINDS[item.kind];
        return (
          <li key={name}>
            <Link
              to="/inbox"
              search={((before: object) => ({ ...before, item: name })) as never}
              className={classes.row}
              data-item={name}
              aria-current={name === chosen ? "true" : undefined}
            >
              <span className={classes.mark} data-tone={tone} title={word}>
                <span aria-hidden>{mark}</span>
                <span className="unseen">{word}: </span>
              </span>
              <span className={classes.title}>{item.title ?? item.why}</span>
              <span className={classes.under}>
                <span className={classes.agent}>{item.agent_id ?? "unknown"}</span>
                {item.risk && <Tag tone={RISKS[item.risk]}>{item.risk} risk</Tag>}
                {item.confidence !== null && <span>{Math.round(item.confidence * 100)} % sure</span>}
                <span className={classes.when}>
                  {item.deadline ? <Left until={item.deadline} /> : <Ago at={item.held_at} />}
                </span>
              </span>
            </Link>
          </li>
        );
      })}
    </ul>
  );
}
