// Who disagrees with whom about what: the open ones first; the chosen one with its values side by side, their
// sources, and the ruling that ends it. Below: who uses tools unlike its kind.
import { useMemo, useRef } from "react";
import { useAnswer } from "~/api/questions";
import type { ConflictItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, Loading, Panel, Trouble } from "~/widgets/Panel";
import { Deck } from "../Deck";
import classes from "../Deck.module.css";
import { Conflict } from "./Conflict";
import { Divergences } from "./Divergences";
import { agentsOf, keyOf, ordered, place, sinceWhen } from "./sides";

const COLUMNS: Column<ConflictItem>[] = [
  {
    id: "subject",
    title: "About",
    cell: (one) => <span title={one.subject}>{one.subject}</span>,
  },
  {
    id: "values",
    title: "Values",
    width: "26%",
    from: 420,
    cell: (one) => {
      const text = one.sides.map((side) => side.value).join(" ≠ ");
      return <span title={text}>{text}</span>;
    },
  },
  {
    id: "agents",
    title: "Who",
    width: "24%",
    from: 640,
    cell: (one) => one.sides.map((side) => agentsOf(side.holders)[0]).join(", "),
  },
  { id: "since", title: "Since", width: 84, cell: (one) => <Ago at={sinceWhen(one)} /> },
  {
    id: "state",
    title: "State",
    width: 84,
    from: 360,
    cell: (one) => (
      <Tag tone={one.reconciled ? "idle" : "alert"}>{one.reconciled ? "✓ ruled" : "! open"}</Tag>
    ),
  },
];

export function Drift() {
  const [url, setUrl] = useUrl();
  const asked = useAnswer("/v1/drift", { hours: 168 }, { every: 5_000, keep: true });
  const conflicts = useMemo(() => ordered(asked.data?.conflicts ?? []), [asked.data]);
  const open = conflicts.filter((one) => one.reconciled === null).length;
  // Without a choice the first that was seen stays: a newer one must not take the place of what is being ruled.
  const pinned = useRef<string | undefined>(undefined);
  const named = (key: string | undefined) => conflicts.find((one) => keyOf(one) === key);
  const chosen = named(url.conflict) ?? named(pinned.current) ?? conflicts[0];
  pinned.current = chosen && keyOf(chosen);
  useKeys(
    {
      t: {
        says: "To the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
    },
    "Drift",
  );
  const gone =
    url.conflict !== undefined && asked.data && !conflicts.some((one) => keyOf(one) === url.conflict);
  return (
    <Deck
      label="Drift"
      lead={
        asked.data === undefined
          ? "Who disagrees with whom"
          : open === 0
            ? "Nobody disagrees"
            : `${open} ${open === 1 ? "disagreement is" : "disagreements are"} open`
      }
      beside="Values that cannot both be true, held in one session or one cluster within 7 days."
      stale={asked.data ? asked.error : null}
    >
      {!asked.data &&
        (asked.error ? (
          <Trouble problem={asked.error} again={() => void asked.refetch()} />
        ) : (
          <Loading rows={8} />
        ))}
      {asked.data && (
        <>
          {conflicts.length === 0 ? (
            <Empty command="observatory demo --incident drift">
              Agents of one session or cluster agree on everything they state plainly (X is Y). To see a
              disagreement:
            </Empty>
          ) : (
            <div className={classes.split}>
              <div className={classes.main}>
                <Grid
                  label="Disagreements"
                  columns={COLUMNS}
                  rows={conflicts}
                  keyOf={keyOf}
                  current={chosen && keyOf(chosen)}
                  onOpen={(one) => setUrl({ conflict: keyOf(one) })}
                />
                {asked.data.truncated && (
                  <p className={classes.foot}>There are more than are looked at; the newest are shown.</p>
                )}
              </div>
              <aside className={classes.aside} aria-label="The chosen disagreement">
                {gone && (
                  <p className={classes.stale} role="status">
                    The disagreement you opened is over: its agents state one value now, or said nothing for 7
                    days.
                  </p>
                )}
                {chosen && <Conflict key={keyOf(chosen)} conflict={chosen} where={place(chosen.scope)} />}
              </aside>
            </div>
          )}
          <Panel title="Unlike their kind">
            <Divergences items={asked.data.divergences} />
          </Panel>
        </>
      )}
    </Deck>
  );
}
