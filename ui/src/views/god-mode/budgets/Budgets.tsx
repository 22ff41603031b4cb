// Budgets: caps, spend and burn rate; set, changed and removed with optimistic concurrency.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { BudgetBurn, BudgetItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Money } from "~/widgets/Figures";
import { money } from "~/widgets/format";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { AuditTrail } from "../AuditTrail";
import access from "../access/Access.module.css";
import { Budget } from "./Budget";
import { nameOf, nearness, paceOf } from "./budget";
import { Spent } from "./Spent";

const PERIODS = { none: "lifetime", daily: "daily", monthly: "monthly" };

export function Budgets() {
  const [url, setUrl] = useUrl();
  const query = useApi("/v1/budgets", undefined, { every: 4_000, keep: true });
  const burn = useApi("/v1/costs/burn", undefined, { every: 10_000, keep: true });
  const denied = useWhyNot("operate");
  const columns = useMemo((): Column<BudgetItem>[] => {
    const burns = new Map(
      (burn.data?.budgets ?? []).map((one): [string, BudgetBurn] => [one.budget_id, one]),
    );
    return [
      { id: "name", title: "Target", cell: (one) => <span title={one.target}>{nameOf(one)}</span> },
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
      { id: "bar", title: "Share of cap", width: 110, from: 520, cell: (one) => <Spent one={one} /> },
      {
        id: "soft",
        title: "Soft",
        width: 66,
        figure: true,
        from: 420,
        cell: (one) => <Money dollars={one.soft} />,
      },
      { id: "hard", title: "Hard", width: 66, figure: true, cell: (one) => <Money dollars={one.hard} /> },
      {
        id: "pace",
        title: "Burn rate",
        width: 190,
        from: 860,
        cell: (one) => paceOf(burns.get(one.budget_id)),
      },
    ];
  }, [burn.data]);
  const chosen = query.data?.items.find((one) => one.budget_id === url.budget);
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
          <Loaded query={query}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty command="observatory budget set tenant --soft 40 --hard 50 --period daily">
                  No budgets. To give the whole tenant a cap:
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
          </Loaded>
        </Panel>
        <aside className={access.aside} aria-label="Selected">
          {isNew && <Budget one={null} onClose={(id) => go(id)} />}
          {chosen && <Budget key={chosen.budget_id} one={chosen} onClose={(id) => go(id)} burn={burn.data} />}
          {url.budget && query.data && !chosen && <Empty>This budget no longer exists.</Empty>}
          {!chosen && !isNew && !url.budget && (
            <Panel title="How caps work">
              <div className={access.part}>
                <p className={access.says}>
                  <b>Soft cap</b>: the first message beyond it is held for approval, once per period.
                </p>
                <p className={access.says}>
                  <b>Hard cap</b>: never exceeded; messages that would are refused and recorded, also with
                  many gateways.
                </p>
                <p className={access.says}>
                  Tenant burn rate: {burn.data ? money(burn.data.tenant.per_min_5m) : "–"}/min. Select a
                  budget to change it.
                </p>
              </div>
            </Panel>
          )}
        </aside>
      </div>
      <div className={access.below}>
        <AuditTrail about="budgets" />
      </div>
    </div>
  );
}
