// Both sessions step by step, paired; only the rows in sight exist. The cursor is the difference one looks
// at.
// biome-ignore-all lint/a11y/useSemanticElements: a virtualiser places the rows, which a <tr> does not allow
// biome-ignore-all lint/a11y/useFocusableInteractive: the actions of a cell are links
import { useMediaQuery } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import type { ComparedStep } from "~/protocol/openapi";
import { money } from "~/widgets/format";
import { CHANGES, differing, type Fold, type Line, type Side, type Word, words } from "./aligned";
import classes from "./Compare.module.css";

interface StepsProps {
  shown: readonly (Line | Fold)[];
  at: number;
  sessions: [string, string];
  onAt: (index: number) => void;
  onUnfold: (from: number) => void;
}

export function ComparedSteps({ shown, at, sessions, onAt, onUnfold }: StepsProps) {
  const box = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 700px)") ?? false;
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box.current,
    estimateSize: (n) => (shown[n]?.kind === "fold" ? 28 : isNarrow ? 116 : 52),
    overscan: 10,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured again when heights change
  useEffect(() => virtual.measure(), [isNarrow, shown]);
  const place = shown.findIndex((line) => line.kind === "step" && line.index === at);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new place scrolls
  useEffect(() => {
    if (place >= 0) virtual.scrollToIndex(place, { align: "center" });
  }, [place]);
  return (
    <div
      role="table"
      aria-label="Steps side by side"
      aria-rowcount={shown.length + 1}
      className={classes.steps}
    >
      <div role="rowgroup" className={classes.heads}>
        <div role="row" className={classes.step}>
          <div role="columnheader">#</div>
          <div role="columnheader">Left</div>
          <div role="columnheader">Change</div>
          <div role="columnheader">Right</div>
        </div>
      </div>
      <div ref={box} role="rowgroup" className={classes.scroll}>
        <div role="presentation" className={classes.all} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const line = shown[item.index];
            if (!line) return null;
            const style = { transform: `translateY(${item.start}px)`, height: item.size };
            return line.kind === "fold" ? (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 2}
                className={classes.fold}
                style={style}
              >
                <div role="cell">
                  <button type="button" onClick={() => onUnfold(line.from)}>
                    = {line.count} steps the same, show them
                  </button>
                </div>
              </div>
            ) : (
              <Pair
                key={item.key}
                {...{ line, style, sessions, onAt }}
                rowIndex={item.index + 2}
                current={line.index === at}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface Paired {
  line: Line;
  style: React.CSSProperties;
  sessions: [string, string];
  rowIndex: number;
  current: boolean;
  onAt: (index: number) => void;
}

const Pair = memo(function Pair({ line, style, sessions, rowIndex, current, onAt }: Paired) {
  const { step, index } = line;
  const [left, right] = [step.left, step.right] as unknown as [Side | null, Side | null];
  const sign = CHANGES[step.change];
  // A step without a counterpart differs as a whole; marking its words would add nothing.
  const pair = left && right;
  const [one, other] = pair ? words(left.intent, right.intent) : [all(left), all(right)];
  const differs = new Set(pair ? step.differs : []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: n and p move the cursor by keyboard
    <div
      role="row"
      aria-rowindex={rowIndex}
      aria-current={current || undefined}
      tabIndex={current ? 0 : -1}
      data-change={step.change}
      className={classes.step}
      style={style}
      onClick={() => onAt(index)}
    >
      <div role="cell" className={classes.faint}>
        {index + 1}
      </div>
      <StepSide side={left} session={sessions[0]} intent={one} differs={differs} />
      <Changed sign={sign} step={step} />
      <StepSide side={right} session={sessions[1]} intent={other} differs={differs} />
    </div>
  );
});

function all(side: Side | null): Word[] {
  return [{ text: side?.intent ?? "", differs: false }];
}

function Changed({ sign, step }: { sign: { mark: string; word: string; tone: string }; step: ComparedStep }) {
  const what = differing(step.differs);
  const cost = step.cost_delta;
  return (
    <div role="cell" className={classes.change} data-tone={sign.tone} title={what}>
      <span className={classes.sign}>
        <span>
          <b aria-hidden>{sign.mark}</b> {sign.word}
        </span>
        {Math.abs(cost) >= 0.00005 && (
          <span className={classes.faint} title="cost, right minus left">
            {cost > 0 ? "+" : "−"}
            {money(Math.abs(cost))}
          </span>
        )}
      </span>
      {what && <span className={classes.faint}>{what}</span>}
    </div>
  );
}

function StepSide({
  side,
  session,
  intent,
  differs,
}: {
  side: Side | null;
  session: string;
  intent: Word[];
  differs: ReadonlySet<string>;
}) {
  if (!side)
    return (
      <div role="cell" className={classes.none}>
        <span className="unseen">no such step</span>
      </div>
    );
  return (
    <div role="cell" className={classes.side}>
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: session }}
        search={{ step: side.id } as never}
        title={side.intent || "open this step"}
        className={classes.intent}
      >
        {side.intent ? <WordsOf words={intent} /> : "(no intent)"}
      </Link>
      <span className={classes.facts}>
        <span data-differs={differs.has("agent_type") || undefined}>{side.agent_id ?? "unknown"}</span>
        {side.tool && (
          <code data-differs={differs.has("tool") || differs.has("input") || undefined}>{side.tool}</code>
        )}
        {side.status && <span data-differs={differs.has("status") || undefined}>{side.status}</span>}
      </span>
    </div>
  );
}

function WordsOf({ words: said }: { words: Word[] }) {
  return said.map((word, n) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: words have no identity but their place
    word.differs ? <mark key={n}>{word.text}</mark> : word.text,
  );
}
