// Conflicts between agents' facts: open ones first; the selected one with its values side by side, their
// sources, and its resolution. Below: agents whose tool usage is an outlier for their type.
import { useMemo, useRef } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { ConflictItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { BoardLayout } from "../BoardLayout";
import classes from "../BoardLayout.module.css";
import { Conflict } from "./Conflict";
import { agentsOf, keyOf, ordered, place, sinceWhen } from "./conflicts";
import { Divergences } from "./Divergences";

const COLUMNS: Column<ConflictItem>[] = [
  {
    id: "subject",
    title: "Subject",
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
    title: "Agents",
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
      <Tag tone={one.reconciled ? "idle" : "alert"}>{one.reconciled ? "✓ resolved" : "! open"}</Tag>
    ),
  },
];

export function Drift() {
  const [url, setUrl] = useUrl();
  const query = useApi("/v1/drift", { hours: 168 }, { every: 5_000, keep: true });
  const conflicts = useMemo(() => ordered(query.data?.conflicts ?? []), [query.data]);
  const open = conflicts.filter((one) => one.reconciled === null).length;
  // Without a selection the first one shown stays: a newer one must not replace one that is being resolved.
  const pinned = useRef<string | undefined>(undefined);
  const named = (key: string | undefined) => conflicts.find((one) => keyOf(one) === key);
  const chosen = named(url.conflict) ?? named(pinned.current) ?? conflicts[0];
  pinned.current = chosen && keyOf(chosen);
  useKeys(
    {
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
    },
    "Drift",
  );
  const gone =
    url.conflict !== undefined && query.data && !conflicts.some((one) => keyOf(one) === url.conflict);
  return (
    <BoardLayout
      label="Drift"
      lead={
        query.data === undefined
          ? "Conflicting facts"
          : open === 0
            ? "No conflicts"
            : plural(open, "open conflict")
      }
      hint="Contradictory values in one session or cluster within 7 days."
      stale={query.data ? query.error : null}
    >
      {!query.data &&
        (query.error ? (
          <ErrorNotice problem={query.error} again={() => void query.refetch()} />
        ) : (
          <Loading rows={8} />
        ))}
      {query.data && (
        <>
          {conflicts.length === 0 ? (
            <Empty command="observatory demo --incident drift">
              Agents of one session or cluster agree on everything they state (X is Y). To see a conflict:
            </Empty>
          ) : (
            <div className={classes.split}>
              <div className={classes.main}>
                <Grid
                  label="Conflicts"
                  columns={COLUMNS}
                  rows={conflicts}
                  keyOf={keyOf}
                  current={chosen && keyOf(chosen)}
                  onOpen={(one) => setUrl({ conflict: keyOf(one) })}
                />
                {query.data.truncated && <p className={classes.foot}>Only the newest conflicts are shown.</p>}
              </div>
              <aside className={classes.aside} aria-label="Selected conflict">
                {gone && (
                  <p className={classes.stale} role="status">
                    This conflict is closed: its agents now state one value, or stated nothing for 7 days.
                  </p>
                )}
                {chosen && <Conflict key={keyOf(chosen)} conflict={chosen} where={place(chosen.scope)} />}
              </aside>
            </div>
          )}
          <Panel title="Outliers by type">
            <Divergences items={query.data.divergences} />
          </Panel>
        </>
      )}
    </BoardLayout>
  );
}
