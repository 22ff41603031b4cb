// The Policy Engine: who may say what to whom. The rules in their order with what they come to in a sentence, moved
// by hand or key, nothing saved before one says so; beside them the rule that is made or changed. In the URL: `rule`.
import { Button } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import { type Problem, send } from "~/api/client";
import { useAnswer } from "~/api/questions";
import type { DryRunAnswer, PolicyList } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { useDraft } from "~/widgets/drafts";
import { Empty, Loading, Trouble } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Editor } from "./Editor";
import { OrderBar } from "./OrderBar";
import classes from "./Policies.module.css";
import { RuleList } from "./RuleList";
import { bodyOf } from "./rules";

export interface Ordering {
  order: string[];
  was: string[];
}

/** An order that is being made, kept when one looks elsewhere; null while none is. */
function useOrdering(): [Ordering | null, (next: Ordering | null) => void] {
  const [text, setText] = useDraft("order of the policies");
  const kept = useMemo(() => (text === null ? null : (JSON.parse(text) as Ordering)), [text]);
  return [kept, (next) => setText(next === null ? null : JSON.stringify(next))];
}

/** What the rules in force stopped of the last hour, asked for by hand: it reads the archive. */
function useCounts(list: PolicyList | undefined) {
  const [found, setFound] = useState<DryRunAnswer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const rules = (list?.items ?? []).filter((rule) => rule.enabled).slice(0, 100);
  const count = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const asked = rules.map((rule) => ({ ...bodyOf(rule), rule_id: rule.rule_id }));
      setFound(await send("POST /v1/policies/dry-run", { body: { rules: asked, minutes: 60 } }));
    } catch (error) {
      setProblem(error as Problem);
    }
    setBusy(false);
  };
  return { found, problem, busy, count, any: rules.length > 0 };
}

export function Policies() {
  const [url, setUrl] = useUrl();
  const chosen = url.rule;
  const asked = useAnswer("/v1/policies", undefined, { every: 4_000 });
  const denied = useWhyNot("operate");
  const [ordering, setOrdering] = useOrdering();
  const counts = useCounts(asked.data);
  const beside = useRef<HTMLElement>(null);
  const open = (rule: string) => setUrl({ rule });
  const close = () => setUrl({ rule: null });
  useKeys(
    {
      n: { says: "A new rule", run: () => denied === undefined && open("new") },
      t: {
        says: "To the rules; the arrows move the one you stand on",
        run: () => document.querySelector<HTMLElement>("[data-handle]")?.focus(),
      },
      ...(chosen !== undefined && {
        d: { says: "To the rule beside", run: () => beside.current?.focus() },
        Backspace: { says: "Close it; what you typed is kept", run: close },
      }),
    },
    "Policies",
  );
  const list = asked.data;
  return (
    <section className={classes.view} aria-label="Policy Engine">
      <h1 className="unseen">Policy Engine</h1>
      <div className={classes.inside} data-open={chosen !== undefined || undefined}>
        <div className={classes.main}>
          <div className={classes.bar}>
            <p>Deny wins over hold, hold over allow, wherever they stand. Of two holds the first counts.</p>
            <div className={classes.buttons}>
              <Button
                size="compact-sm"
                variant="default"
                loading={counts.busy}
                disabled={denied !== undefined || !counts.any}
                title={denied ?? "How many messages of the last hour each rule in force stops"}
                onClick={() => void counts.count()}
              >
                Count the last hour
              </Button>
              <Button
                size="compact-sm"
                disabled={denied !== undefined}
                title={denied}
                onClick={() => open("new")}
              >
                New rule…
              </Button>
            </div>
          </div>
          {denied && <p className={classes.faint}>{denied}</p>}
          {counts.problem && <Trouble problem={counts.problem} />}
          {list && asked.error && <p className={classes.stale}>Not up to date: {asked.error.message}</p>}
          {!list && asked.error && <Trouble problem={asked.error} again={() => void asked.refetch()} />}
          {!list && !asked.error && <Loading rows={6} />}
          {list && (
            <RuleList
              list={list}
              ordering={ordering}
              setOrdering={setOrdering}
              counts={counts.found}
              chosen={chosen}
              denied={denied}
              open={open}
            />
          )}
          {/* Below: above it would push the rules away under the hand that drags one. */}
          {ordering && list && <OrderBar list={list} ordering={ordering} set={setOrdering} denied={denied} />}
          {list?.items.length === 0 && (
            <Empty command='observatory policy add hold --sender type:coder --tool "deploy_*" --note "a person looks first"'>
              There are no rules: what agents say passes. Make one here, try it on the last hour and then save
              it; or on the terminal:
            </Empty>
          )}
        </div>
        {chosen !== undefined && list && (
          <aside className={classes.aside} aria-label="The rule" ref={beside} tabIndex={-1}>
            <Editor key={chosen} rule_id={chosen} list={list} denied={denied} onClose={close} />
          </aside>
        )}
      </div>
    </section>
  );
}
