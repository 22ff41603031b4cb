// Scaling triggers: what each watches, how that stands now, what it suggests, and whether it does.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { RuleItem, TriggerLevel } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import classes from "../Scheduler.module.css";
import own from "./Scaling.module.css";
import { Trigger } from "./Trigger";
import { TriggerForm } from "./TriggerForm";
import { figure, levelsOf, standingOf, suggestSaid, watchSaid } from "./triggers";

export const NEW = "new";

interface Row {
  rule: RuleItem;
  level: TriggerLevel | undefined;
}

export function Scaling() {
  const [url, setUrl] = useUrl();
  const asked = useAnswer("/v1/scaling-triggers", undefined, { every: 5_000, keep: true });
  const levels = useAnswer("/v1/scaling-triggers/levels", undefined, { every: 4_000, keep: true });
  const denied = useWhyNot("admin");
  const rows = useMemo((): Row[] => {
    const known = new Map(levels.data?.items.map((one) => [one.rule_id, one]));
    return (asked.data?.items ?? []).map((rule) => ({ rule, level: known.get(rule.rule_id) }));
  }, [asked.data, levels.data]);
  const chosen = rows.find(({ rule }) => rule.rule_id === url.trigger);
  const close = () => setUrl({ trigger: null, edit: null });
  return (
    <div className={classes.split} data-alone={url.trigger === undefined || undefined}>
      <div className={classes.main}>
        <div className={classes.bar}>
          <p className={classes.faint}>
            A trigger suggests more or fewer agents to whoever is told; the gateway starts none itself.
          </p>
          <span className={classes.right}>
            <Button
              size="compact-sm"
              disabled={denied !== undefined}
              title={denied}
              onClick={() => setUrl({ trigger: NEW, edit: null })}
            >
              New trigger…
            </Button>
          </span>
        </div>
        {rows.length > 0 && (
          <Grid
            label="Scaling triggers"
            columns={COLUMNS}
            rows={rows}
            keyOf={keyOf}
            current={url.trigger}
            onOpen={({ rule }) => setUrl({ trigger: rule.rule_id, edit: null })}
          />
        )}
        {!asked.data && asked.error && <Trouble problem={asked.error} again={() => asked.refetch()} />}
        {!asked.data && !asked.error && <Loading rows={4} />}
        {asked.data?.items.length === 0 && (
          <Empty
            command={
              'observatory scaling add "More coders" queue_depth up --amount 2 --target coder --threshold 50'
            }
          >
            No trigger yet. One watches queues, silent agents, circuits or money, and tells your orchestrator
            by webhook to start or stop agents. Make one with New trigger…, or:
          </Empty>
        )}
        {asked.data && (
          <p className={classes.foot} role="status">
            {(asked.error ?? levels.error) && (
              <span className={classes.stale}>Not up to date: {(asked.error ?? levels.error)?.message}</span>
            )}
            {rows.length > 0 && (
              <span>
                {rows.length} {rows.length === 1 ? "trigger" : "triggers"}
              </span>
            )}
            {denied && <span>{denied}</span>}
          </p>
        )}
      </div>
      {url.trigger !== undefined && (
        <aside className={classes.aside} aria-label="The chosen trigger" tabIndex={-1}>
          {url.trigger === NEW || (chosen && url.edit === "1") ? (
            <TriggerForm
              key={url.trigger}
              rule={chosen?.rule ?? null}
              conditions={asked.data?.conditions ?? []}
              end={(made) =>
                setUrl({ trigger: made?.rule_id ?? (url.trigger === NEW ? null : url.trigger), edit: null })
              }
            />
          ) : chosen ? (
            <Trigger key={url.trigger} rule={chosen.rule} level={chosen.level} close={close} />
          ) : (
            asked.data && (
              <Empty>
                There is no such trigger here.{" "}
                <button type="button" className={classes.link} onClick={close}>
                  Show all triggers
                </button>
              </Empty>
            )
          )}
        </aside>
      )}
    </div>
  );
}

const keyOf = ({ rule }: Row) => rule.rule_id;

function State({ rule }: { rule: RuleItem }) {
  const now = useNow();
  const sign = standingOf(rule, now);
  return (
    <Tag tone={sign.tone}>
      {sign.mark} {sign.word}
    </Tag>
  );
}

export function LevelBar({ rule, level }: Row) {
  const [nearest] = levelsOf(rule, level);
  if (!nearest) return <span className={classes.faint}>{level ? "nothing to count" : "–"}</span>;
  return (
    <span className={own.level} data-breaches={nearest.breaches || undefined}>
      <span className={own.track} aria-hidden>
        <i style={{ width: `${Math.round(nearest.share * 100)}%` }} />
      </span>
      <span title={nearest.subject}>
        {nearest.breaches && "! "}
        {figure(rule.condition, nearest.value)}
        {rule.condition !== "breaker" && ` of ${figure(rule.condition, rule.threshold)}`}
      </span>
    </span>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", title: "Trigger", cell: ({ rule }) => rule.name },
  {
    id: "watches",
    title: "Watches",
    width: "38%",
    from: 620,
    cell: ({ rule }) => <span title={watchSaid(rule)}>{watchSaid(rule)}</span>,
  },
  { id: "level", title: "Now", width: 168, cell: (row) => <LevelBar {...row} /> },
  { id: "suggests", title: "Suggests", width: 92, from: 460, cell: ({ rule }) => suggestSaid(rule) },
  { id: "state", title: "State", width: 100, cell: ({ rule }) => <State rule={rule} /> },
];
