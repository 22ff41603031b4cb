// Two sessions side by side (`/compare?left=&right=`): what became of each, where they part, step by step,
// and what each remembers. Keys n and p go from difference to difference; `at` in the URL is where one is.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { useAnswer } from "~/api/questions";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Empty, Shown } from "~/widgets/Panel";
import { type Aligned, CHANGE_ORDER, CHANGES, lines, nextDifference, read } from "./compare/aligned";
import { Choose } from "./compare/Choose";
import classes from "./compare/Compare.module.css";
import { Heading, Remembered } from "./compare/Heading";
import { Steps } from "./compare/Steps";

export function Compare() {
  const [url, setUrl] = useUrl();
  const { left, right } = url;
  const both = left !== undefined && right !== undefined;
  const asked = useAnswer("/v1/compare", { left, right }, { enabled: both });
  return (
    <section className={classes.view} aria-label="Compare two sessions">
      <h1 className="unseen">Compare two sessions</h1>
      <Choose left={left} right={right} onChange={(changes) => setUrl(changes)} />
      {both ? (
        <Shown asked={asked} rows={10}>
          {(answer) => <Compared key={`${left} ${right}`} compared={read(answer)} />}
        </Shown>
      ) : (
        <Empty command="observatory compare <session> <session>">
          Choose two sessions: how it was and how it is. In the list of sessions, x chooses a row and c
          compares.
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
        says: "Only differences, or all",
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
          {first === null ? "They do not differ" : `Where they part: step ${first.index + 1}`}
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
        <Steps
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
