// Session cost against caps: the sum, every budget with its bar, burn rate, time until a cap is reached, and
// the top spender (R204).
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { BudgetBurn } from "~/protocol/openapi";
import { Money } from "~/widgets/Figures";
import { money } from "~/widgets/format";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import classes from "./Aside.module.css";
import { against, nameOf, outlook } from "./budgetText";
import { CapBar } from "./CapBar";
import type { SessionRow } from "./session";

const SHOWN = 8;

export function CostAgainstCap({ live }: { live: readonly SessionRow[] }) {
  const query = useApi("/v1/costs/burn", undefined, { every: 10_000, keep: true });
  const goals = useMemo(() => new Map(live.map((row) => [row.session_id, row.goal])), [live]);
  const sum = live.reduce((total, row) => total + row.cost, 0);
  return (
    <Panel title="Cost against cap">
      <div className={classes.sum}>
        <b>
          <Money dollars={sum} />
        </b>
        <span className={classes.faint}>
          in {live.length.toLocaleString("en")} sessions
          {query.data && `, ${money(query.data.tenant.per_min_5m)}/min`}
        </span>
      </div>
      <Loaded query={query} rows={2}>
        {(burn) =>
          burn.budgets.length === 0 ? (
            <Empty command="observatory budget set tenant --soft 40 --hard 50 --period daily">
              No budget is set, so cost is unlimited. An operator sets one:
            </Empty>
          ) : (
            <ul className={classes.list}>
              {burn.budgets.slice(0, SHOWN).map((budget) => (
                <Budget
                  key={`${budget.budget_id} ${budget.whose ?? ""}`}
                  budget={budget}
                  goal={goals.get(budget.whose ?? budget.target)}
                />
              ))}
              {burn.budgets.length > SHOWN && (
                <li className={classes.item}>
                  <span className={classes.faint}>
                    {burn.budgets.length - SHOWN} more that are less urgent
                  </span>
                </li>
              )}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Budget({ budget, goal }: { budget: BudgetBurn; goal: string | null | undefined }) {
  const name = nameOf(budget, goal);
  const { hottest } = budget;
  return (
    <li className={classes.item}>
      <span className={classes.two}>
        <span className={classes.name} title={name}>
          {name}
        </span>
        <span>{against(budget.spent, budget.soft, budget.hard)}</span>
      </span>
      <CapBar spent={budget.spent} soft={budget.soft} hard={budget.hard} label={name} />
      <span className={classes.two} data-urgent={isUrgent(budget) || undefined}>
        <span className={classes.outlook}>{outlook(budget)}</span>
        <span className={classes.faint}>{money(budget.per_min_5m)}/min</span>
      </span>
      {hottest && (
        <span className={classes.faint}>
          Top spender:{" "}
          <Link
            className={classes.inline}
            to="/sessions/$sessionId"
            params={{ sessionId: hottest.session_id }}
            search={(hottest.branch ? { step: hottest.branch.step_id } : {}) as never}
            title={`session ${hottest.session_id}`}
          >
            {hottest.branch?.intent ?? hottest.agent_id ?? "its session"}
          </Link>{" "}
          {hottest.agent_id && hottest.branch?.intent ? `by ${hottest.agent_id}, ` : ""}
          {money(hottest.cost_5m)} in 5 min
        </span>
      )}
    </li>
  );
}

function isUrgent(budget: BudgetBurn): boolean {
  return (
    (budget.hard_in_s !== null && budget.hard_in_s < 900) ||
    (budget.soft !== null && budget.spent >= budget.soft)
  );
}
