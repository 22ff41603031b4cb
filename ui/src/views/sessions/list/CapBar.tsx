// Spend against soft and hard cap as a bar: the caps are ticks with text, so that no colour has to be read.
import { money } from "~/widgets/format";
import { against, bar } from "./budgetText";
import classes from "./CapBar.module.css";

export function CapBar({
  spent,
  soft,
  hard,
  label,
}: {
  spent: number;
  soft: number | null;
  hard: number | null;
  label: string;
}) {
  const drawn = bar(spent, soft, hard);
  const caps = [
    soft === null ? "" : `soft ${money(soft)}`,
    hard === null ? "" : `hard ${money(hard)}`,
  ].filter(Boolean);
  const text = `${label}: ${against(spent, soft, hard)}${caps.length ? ` (${caps.join(", ")})` : ""}`;
  return (
    <span className={classes.bar} data-tone={drawn.tone} role="img" aria-label={text} title={text}>
      <span className={classes.filled} style={{ width: `${drawn.filled * 100}%` }} />
      {drawn.soft !== null && <span className={classes.soft} style={{ left: `${drawn.soft * 100}%` }} />}
      {drawn.hard !== null && <span className={classes.hard} style={{ left: `${drawn.hard * 100}%` }} />}
    </span>
  );
}
