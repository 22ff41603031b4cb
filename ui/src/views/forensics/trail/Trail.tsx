// The decision trail: sessions of thoughts, last started first; one opens to its records by task, its seal,
// and a verification of all of it in this browser.

import { plural } from "~/plural";
import type { ThoughtSessionItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { usePaged } from "../usePaged";
import { Session } from "./Session";
import classes from "./Trail.module.css";
import { stateOf } from "./thoughtText";

const COLUMNS: readonly Column<ThoughtSessionItem>[] = [
  {
    id: "intent",
    title: "Intent",
    cell: (one) => (one.intent_shredded_by ? "(shredded)" : inert(one.intent ?? "")),
  },
  {
    id: "state",
    title: "State",
    cell: (one) => {
      const { tone, mark, word } = stateOf(one);
      return (
        <Tag tone={tone}>
          <span aria-hidden>{mark}</span> {word}
        </Tag>
      );
    },
    width: 130,
  },
  { id: "records", title: "Records", cell: (one) => one.records, width: 70, figure: true, from: 420 },
  {
    id: "grade",
    title: "Grade",
    cell: (one) => (one.proof_grade ? "proof" : "plain"),
    width: 64,
    from: 560,
  },
  { id: "at", title: "Started", cell: (one) => <Ago at={one.started_at} />, width: 84, from: 320 },
];

const QUERY = { limit: 100 };
const byId = (one: ThoughtSessionItem) => one.session_id;

export function Trail() {
  const [url, setUrl] = useUrl();
  const { first, rows, more, fetchMore, busy } = usePaged("/v1/thought-sessions", QUERY, byId, 5_000);
  const chosen = url.session;
  useKeys(
    {
      t: {
        says: "Focus the table",
        run: () => document.querySelector<HTMLElement>("tr[data-reached]")?.focus(),
      },
      ...(chosen !== undefined && {
        Backspace: { says: "Close the session", run: () => setUrl({ session: null, record: null }) },
      }),
    },
    "Decision trail",
  );
  return (
    <section className={classes.view} aria-label="Decision trail">
      <h1 className="unseen">Decision trail</h1>
      <div className={classes.inside} data-open={chosen !== undefined || undefined}>
        <div className={classes.main}>
          <Loaded query={first} rows={8}>
            {() =>
              rows.length === 0 ? (
                <Empty command="python examples/prove/decide.py">
                  No thoughts recorded yet. An agent that records them can later prove what it planned, saw
                  and decided, unchanged; to see one:
                </Empty>
              ) : (
                <>
                  <Grid
                    label="Sessions of thoughts"
                    columns={COLUMNS}
                    rows={rows}
                    keyOf={byId}
                    current={chosen}
                    onOpen={(one) => setUrl({ session: one.session_id, record: null }, chosen !== undefined)}
                    onEnd={fetchMore}
                  />
                  <p className={classes.foot} role="status">
                    {plural(rows.length, "session")}
                    {more && (busy ? ", loading older…" : ", scroll for older")}
                  </p>
                </>
              )
            }
          </Loaded>
        </div>
        {chosen !== undefined && (
          <div className={classes.aside}>
            <Session key={chosen} sessionId={chosen} close={() => setUrl({ session: null, record: null })} />
          </div>
        )}
      </div>
    </section>
  );
}
