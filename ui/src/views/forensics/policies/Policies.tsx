// The Policy Engine: the rules in their order, each as a sentence, reordered by drag or keys and saved
// explicitly; next to them the rule being edited. In the URL: `rule`.
import { Button } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import { type Problem, send } from "~/api/client";
import { useApi } from "~/api/queries";
import type { DryRunAnswer, PolicyList } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { useDraft } from "~/widgets/drafts";
import { Empty, ErrorNotice, Loading } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { Editor } from "./Editor";
import { OrderBar } from "./OrderBar";
import classes from "./Policies.module.css";
import { RuleList } from "./RuleList";
import { bodyOf } from "./rules";

export interface Ordering {
  order: string[];
  was: string[];
}

/** An unsaved order, kept while other pages are open; null if none. */
function useOrdering(): [Ordering | null, (next: Ordering | null) => void] {
  const [text, setText] = useDraft("order of the policies");
  const kept = useMemo(() => (text === null ? null : (JSON.parse(text) as Ordering)), [text]);
  return [kept, (next) => setText(next === null ? null : JSON.stringify(next))];
}

/** What the rules in force stopped in the last hour, computed on request: it reads the archive. */
function useCounts(list: PolicyList | undefined) {
  const [found, setFound] = useState<DryRunAnswer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const rules = (list?.items ?? []).filter((rule) => rule.enabled).slice(0, 100);
  const count = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const query = rules.map((rule) => ({ ...bodyOf(rule), rule_id: rule.rule_id }));
      setFound(await send("POST /v1/policies/dry-run", { body: { rules: query, minutes: 60 } }));
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
  const query = useApi("/v1/policies", undefined, { every: 4_000 });
  const denied = useWhyNot("operate");
  const [ordering, setOrdering] = useOrdering();
  const counts = useCounts(query.data);
  const detailPane = useRef<HTMLElement>(null);
  const open = (rule: string) => setUrl({ rule });
  const close = () => setUrl({ rule: null });
  useKeys(
    {
      n: { says: "New rule", run: () => denied === undefined && open("new") },
      t: {
        says: "Focus the rules; arrows move the focused one",
        run: () => document.querySelector<HTMLElement>("[data-handle]")?.focus(),
      },
      ...(chosen !== undefined && {
        d: { says: "Focus the open rule", run: () => detailPane.current?.focus() },
        Backspace: { says: "Close; your input is kept", run: close },
      }),
    },
    "Policies",
  );
  const list = query.data;
  return (
    <section className={classes.view} aria-label="Policy Engine">
      <h1 className="unseen">Policy Engine</h1>
      <div className={classes.inside} data-open={chosen !== undefined || undefined}>
        <div className={classes.main}>
          <div className={classes.bar}>
            <p>
              Deny overrides hold, and hold overrides allow, in any order. Of several holds the first applies.
            </p>
            <div className={classes.buttons}>
              <Button
                size="compact-sm"
                variant="default"
                loading={counts.busy}
                disabled={denied !== undefined || !counts.any}
                title={denied ?? "How many messages of the last hour each enabled rule would stop"}
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
          {counts.problem && <ErrorNotice problem={counts.problem} />}
          {list && query.error && <p className={classes.stale}>Not up to date: {query.error.message}</p>}
          {!list && query.error && <ErrorNotice problem={query.error} again={() => void query.refetch()} />}
          {!list && !query.error && <Loading rows={6} />}
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
          {/* Below the list: above, it would push the rules away while one is dragged. */}
          {ordering && list && <OrderBar list={list} ordering={ordering} set={setOrdering} denied={denied} />}
          {list?.items.length === 0 && (
            <Empty command='observatory policy add hold --sender type:coder --tool "deploy_*" --note "human review first"'>
              No rules: all messages pass. Create one here, test it on the last hour and save it; or on the
              command line:
            </Empty>
          )}
        </div>
        {chosen !== undefined && list && (
          <aside className={classes.aside} aria-label="Rule" ref={detailPane} tabIndex={-1}>
            <Editor key={chosen} rule_id={chosen} list={list} denied={denied} onClose={close} />
          </aside>
        )}
      </div>
    </section>
  );
}
