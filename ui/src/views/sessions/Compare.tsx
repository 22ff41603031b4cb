// Session comparison (`/compare?left=&right=`): outcomes, the first difference, steps side by side, and
// memory. Keys n and p move between differences; `at` in the URL is the current one.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Loaded } from "~/widgets/Panel";
import { type Aligned, CHANGE_ORDER, CHANGES, lines, nextDifference, read } from "./compare/aligned";
import { Choose } from "./compare/Choose";
import classes from "./compare/Compare.module.css";
import { ComparedSteps } from "./compare/ComparedSteps";
import { Heading, Remembered } from "./compare/Heading";

export function Compare() {
  const [url, setUrl] = useUrl();
  const { left, right } = url;
  const both = left !== undefined && right !== undefined;
  const query = useApi("/v1/compare", { left, right }, { enabled: both });
  return (
    <section className={classes.view} aria-label="Compare two sessions">
      <h1 className="unseen">Compare two sessions</h1>
      <Choose left={left} right={right} onChange={(changes) => setUrl(changes)} />
      {both ? (
        <Loaded query={query} rows={10}>
          {(answer) => <Compared key={`${left} ${right}`} compared={read(answer)} />}
        </Loaded>
      ) : (
        <Empty command="observatory compare <session> <session>">
          Select two sessions, before and after. In the list of sessions, x selects a row and c compares.
        </Empty>
      )}
    </section>
  );
}

function Compared({ compared }: { compared: Aligned }) {
  const [url, setUrl] = useUrl();
  const { steps, first_divergence: first, counts, alignment } = compared;
  const onlyDifferences = url.show !== "all";
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const shown = useMemo(() => lines(steps, onlyDifferences, open), [steps, onlyDifferences, open]);
  const at = url.at === undefined ? -1 : Number(url.at) - 1;
  const goTo = (index: number | null) => index !== null && setUrl({ at: String(index + 1) }, true);
  const total = steps.length - (counts.same ?? 0);
  useKeys(
    {
      n: { says: "Next difference", run: () => goTo(nextDifference(steps, at, 1)) },
      p: { says: "Previous difference", run: () => goTo(nextDifference(steps, Math.max(at, 0), -1)) },
      d: {
        says: "Toggle: only differences",
        run: () => setUrl({ show: onlyDifferences ? "all" : null }, true),
      },
    },
    "Compare",
  );
  return (
    <div className={classes.compared}>
      <Heading compared={compared} />
      <div className={classes.bar}>
        <ul className={classes.counts} aria-label="Steps by change">
          {CHANGE_ORDER.map((change) => (
            <li key={change} data-tone={CHANGES[change].tone}>
              <b aria-hidden>{CHANGES[change].mark}</b> {counts[change] ?? 0} {CHANGES[change].word}
            </li>
          ))}
        </ul>
        <Button size="compact-xs" disabled={first === null} onClick={() => goTo(first?.index ?? null)}>
          {first === null ? "No differences" : `First difference: step ${first.index + 1}`}
        </Button>
        <Button
          size="compact-xs"
          variant="default"
          disabled={total === 0}
          onClick={() => goTo(nextDifference(steps, Math.max(at, 0), -1))}
        >
          Previous
        </Button>
        <Button
          size="compact-xs"
          variant="default"
          disabled={total === 0}
          onClick={() => goTo(nextDifference(steps, at, 1))}
        >
          Next difference
        </Button>
        <label className={classes.only}>
          <input
            type="checkbox"
            checked={onlyDifferences}
            onChange={(event) => setUrl({ show: event.currentTarget.checked ? null : "all" }, true)}
          />
          only differences
        </label>
        {!alignment.exact && (
          <span className={classes.faint}>
            Very long sessions: paired in a band of {alignment.band} steps.
          </span>
        )}
        {(compared.left.truncated || compared.right.truncated) && (
          <span className={classes.faint}>The oldest steps were left out.</span>
        )}
      </div>
      {steps.length === 0 ? (
        <Empty>Neither session has a step yet.</Empty>
      ) : (
        <ComparedSteps
          shown={shown}
          at={at}
          sessions={[compared.left.session_id, compared.right.session_id]}
          onAt={(index) => goTo(index)}
          onUnfold={(from) => setOpen(new Set([...open, from]))}
        />
      )}
      <Remembered memory={compared.memory} />
    </div>
  );
}
