// Scaling triggers: condition, present level, suggestion, and state.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { RuleItem, TriggerLevel } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "../Scheduler.module.css";
import own from "./Scaling.module.css";
import { Trigger } from "./Trigger";
import { TriggerForm } from "./TriggerForm";
import { conditionText, figure, levelsOf, standingOf, suggestionText } from "./triggers";

export const NEW = "new";

interface Row {
  rule: RuleItem;
  level: TriggerLevel | undefined;
}

export function Scaling() {
  const [url, setUrl] = useUrl();
  const query = useApi("/v1/scaling-triggers", undefined, { every: 5_000, keep: true });
  const levels = useApi("/v1/scaling-triggers/levels", undefined, { every: 4_000, keep: true });
  const denied = useWhyNot("admin");
  const rows = useMemo((): Row[] => {
    const known = new Map(levels.data?.items.map((one) => [one.rule_id, one]));
    return (query.data?.items ?? []).map((rule) => ({ rule, level: known.get(rule.rule_id) }));
  }, [query.data, levels.data]);
  const chosen = rows.find(({ rule }) => rule.rule_id === url.trigger);
  const close = () => setUrl({ trigger: null, edit: null });
  return (
    <div className={classes.split} data-alone={url.trigger === undefined || undefined}>
      <div className={classes.main}>
        <div className={classes.bar}>
          <p className={classes.faint}>
            A trigger suggests more or fewer agents to its channels; the gateway starts none itself.
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
        {!query.data && query.error && <ErrorNotice problem={query.error} again={() => query.refetch()} />}
        {!query.data && !query.error && <Loading rows={4} />}
        {query.data?.items.length === 0 && (
          <Empty
            command={
              'observatory scaling add "More coders" queue_depth up --amount 2 --target coder --threshold 50'
            }
          >
            No triggers yet. A trigger watches queues, silent agents, circuits or spend, and notifies your
            orchestrator by webhook to start or stop agents. Create one with New trigger…, or:
          </Empty>
        )}
        {query.data && (
          <p className={classes.foot} role="status">
            {(query.error ?? levels.error) && (
              <span className={classes.stale}>Not up to date: {(query.error ?? levels.error)?.message}</span>
            )}
            {rows.length > 0 && <span>{plural(rows.length, "trigger")}</span>}
            {denied && <span>{denied}</span>}
          </p>
        )}
      </div>
      {url.trigger !== undefined && (
        <aside className={classes.aside} aria-label="Selected trigger" tabIndex={-1}>
          {url.trigger === NEW || (chosen && url.edit === "1") ? (
            <TriggerForm
              key={url.trigger}
              rule={chosen?.rule ?? null}
              conditions={query.data?.conditions ?? []}
              end={(made) =>
                setUrl({ trigger: made?.rule_id ?? (url.trigger === NEW ? null : url.trigger), edit: null })
              }
            />
          ) : chosen ? (
            <Trigger key={url.trigger} rule={chosen.rule} level={chosen.level} close={close} />
          ) : (
            query.data && (
              <Empty>
                There is no such trigger.{" "}
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
  if (!nearest) return <span className={classes.faint}>{level ? "no data" : "–"}</span>;
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
    title: "Condition",
    width: "38%",
    from: 620,
    cell: ({ rule }) => <span title={conditionText(rule)}>{conditionText(rule)}</span>,
  },
  { id: "level", title: "Now", width: 168, cell: (row) => <LevelBar {...row} /> },
  { id: "suggests", title: "Suggestion", width: 92, from: 460, cell: ({ rule }) => suggestionText(rule) },
  { id: "state", title: "State", width: 100, cell: ({ rule }) => <State rule={rule} /> },
];
