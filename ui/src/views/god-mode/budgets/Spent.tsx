// Spend against the cap as a bar: the soft cap is a tick in it, the text has the rest.
import type { BudgetItem } from "~/protocol/openapi";
import { money } from "~/widgets/format";
import classes from "./Budgets.module.css";
import { nearness } from "./budget";

export function Spent({ one }: { one: BudgetItem }) {
  const cap = one.hard ?? one.soft ?? 0;
  const { tone, word } = nearness(one);
  const says = `${money(one.spent)} of ${money(cap)}: ${word}`;
  return (
    <span className={classes.bar} role="img" aria-label={says} title={says}>
      <span data-tone={tone} style={{ width: `${Math.min(100, one.share * 100)}%` }} />
      {one.soft !== null && one.hard !== null && one.hard > 0 && (
        <i style={{ left: `${(one.soft / one.hard) * 100}%` }} />
      )}
    </span>
  );
}
