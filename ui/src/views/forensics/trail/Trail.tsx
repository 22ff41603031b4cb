// The decision trail: sessions of thoughts, the last started first; one opens to its records by task, its seal, and a
// verification of all of it in this browser.

import type { ThoughtSessionItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Empty, Shown } from "~/widgets/Panel";
import { usePaged } from "../usePaged";
import { stateOf } from "./reading";
import { Session } from "./Session";
import classes from "./Trail.module.css";

const COLUMNS: readonly Column<ThoughtSessionItem>[] = [
  {
    id: "intent",
    title: "For what",
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
        says: "To the table",
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
          <Shown asked={first} rows={8}>
            {() =>
              rows.length === 0 ? (
                <Empty command="python examples/prove/decide.py">
                  No agent has written down a thought yet. One that does can prove later what it planned, saw
                  and decided, and that nothing of it was changed; to see one:
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
                    {rows.length.toLocaleString("en")} {rows.length === 1 ? "session" : "sessions"}
                    {more && (busy ? ", older ones come…" : ", older ones when you scroll")}
                  </p>
                </>
              )
            }
          </Shown>
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
