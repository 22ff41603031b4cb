// Budgets: what may be spent, what is, how fast; set, changed and removed with who was first told.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { BudgetBurn, BudgetItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Money } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { money } from "~/widgets/words";
import access from "../access/Access.module.css";
import { Trail } from "../Trail";
import { Budget } from "./Budget";
import { nameOf, nearness, paceOf } from "./budget";
import { Spent } from "./Spent";

const PERIODS = { none: "in all", daily: "a day", monthly: "a month" };

export function Budgets() {
  const [url, setUrl] = useUrl();
  const asked = useAnswer("/v1/budgets", undefined, { every: 4_000, keep: true });
  const burn = useAnswer("/v1/costs/burn", undefined, { every: 10_000, keep: true });
  const denied = useWhyNot("operate");
  const columns = useMemo((): Column<BudgetItem>[] => {
    const burns = new Map(
      (burn.data?.budgets ?? []).map((one): [string, BudgetBurn] => [one.budget_id, one]),
    );
    return [
      { id: "name", title: "For", cell: (one) => <span title={one.target}>{nameOf(one)}</span> },
      { id: "period", title: "Period", width: 76, from: 420, cell: (one) => PERIODS[one.period] },
      {
        id: "state",
        title: "State",
        width: 170,
        from: 700,
        cell: (one) => {
          const { word, mark, tone } = nearness(one);
          return (
            <Tag tone={{ calm: "good", soft: "blocked", hard: "alert" }[tone]}>
              {mark} {word}
            </Tag>
          );
        },
      },
      { id: "spent", title: "Spent", width: 74, figure: true, cell: (one) => <Money dollars={one.spent} /> },
      { id: "bar", title: "Of the cap", width: 110, from: 520, cell: (one) => <Spent one={one} /> },
      {
        id: "soft",
        title: "Soft",
        width: 66,
        figure: true,
        from: 420,
        cell: (one) => <Money dollars={one.soft} />,
      },
      { id: "hard", title: "Hard", width: 66, figure: true, cell: (one) => <Money dollars={one.hard} /> },
      { id: "pace", title: "Pace", width: 190, from: 860, cell: (one) => paceOf(burns.get(one.budget_id)) },
    ];
  }, [burn.data]);
  const chosen = asked.data?.items.find((one) => one.budget_id === url.budget);
  const isNew = url.new === "budget";
  const go = (budget: string | null, fresh: string | null = null) => setUrl({ budget, new: fresh });
  return (
    <div className={access.board}>
      <div className={access.tables}>
        <Panel
          title="Budgets"
          aside={
            <>
              {denied && <span>{denied}</span>}
              <Button
                size="compact-xs"
                variant="default"
                disabled={denied !== undefined}
                title={denied}
                onClick={() => go(null, "budget")}
              >
                New budget…
              </Button>
            </>
          }
        >
          <Shown asked={asked}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty command="observatory budget set tenant --soft 40 --hard 50 --period daily">
                  No budget is set: nothing is refused for its cost. To give the whole tenant a cap:
                </Empty>
              ) : (
                <div className={access.grid}>
                  <Grid
                    label="Budgets"
                    columns={columns}
                    rows={items}
                    keyOf={(one) => one.budget_id}
                    current={url.budget}
                    onOpen={(one) => go(one.budget_id)}
                  />
                </div>
              )
            }
          </Shown>
        </Panel>
        <aside className={access.aside} aria-label="Chosen">
          {isNew && <Budget one={null} onClose={(id) => go(id)} />}
          {chosen && <Budget key={chosen.budget_id} one={chosen} onClose={(id) => go(id)} burn={burn.data} />}
          {url.budget && asked.data && !chosen && <Empty>No budget has that id any more.</Empty>}
          {!chosen && !isNew && !url.budget && (
            <Panel title="How caps work">
              <div className={access.part}>
                <p className={access.says}>
                  <b>Soft cap</b>: the first message beyond it waits for a person, once a period.
                </p>
                <p className={access.says}>
                  <b>Hard cap</b>: never passed; what would is refused and recorded, also with many gateways.
                </p>
                <p className={access.says}>
                  The tenant burns {burn.data ? money(burn.data.tenant.per_min_5m) : "–"} a minute now. Choose
                  a budget to change it.
                </p>
              </div>
            </Panel>
          )}
        </aside>
      </div>
      <div className={access.below}>
        <Trail about="budgets" />
      </div>
    </div>
  );
}
