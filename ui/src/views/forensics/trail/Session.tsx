// One session of thoughts: its words by task, each record with its hashes and references, the seal, and the check.
import { CloseButton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { get, type Problem } from "~/api/client";
import { ProofBadge } from "~/proof/ProofBadge";
import type { ThoughtItem, ThoughtPage, ThoughtSessionItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Shown } from "~/widgets/Panel";
import { byTask, stateOf, TYPES, wordsOf } from "./reading";
import { Check, Sealing } from "./Sealing";
import classes from "./Trail.module.css";

const PATH = "/v1/sessions/{session_id}/thoughts";

/** All records: a session is a story of dozens, and a root is over all of them. */
function useThoughts(session_id: string) {
  const pages = useInfiniteQuery<
    ThoughtPage,
    Problem,
    { session: ThoughtSessionItem; items: ThoughtItem[] },
    unknown[],
    number
  >({
    queryKey: [PATH, { session_id }, {}],
    queryFn: ({ pageParam, signal }) =>
      get(PATH, { params: { session_id }, query: { start: pageParam, limit: 1000 }, signal }),
    initialPageParam: 0,
    getNextPageParam: (last) => last.next,
    refetchInterval: 5_000,
    select: ({ pages: all }) => ({
      session: (all[0] as ThoughtPage).session,
      items: all.flatMap((page) => page.items),
    }),
  });
  if (pages.hasNextPage && !pages.isFetchingNextPage && !pages.isError) void pages.fetchNextPage();
  return pages;
}

export function Session({ sessionId, close }: { sessionId: string; close: () => void }) {
  const asked = useThoughts(sessionId);
  return (
    <aside className={classes.panel} aria-label="Session of thoughts">
      <Shown asked={asked} rows={10}>
        {({ session, items }) => <Told session={session} items={items} close={close} />}
      </Shown>
      {asked.error && !asked.data && <CloseButton aria-label="Close the session" onClick={close} />}
    </aside>
  );
}

interface Props {
  session: ThoughtSessionItem;
  items: ThoughtItem[];
}

function Told({ session, items, close }: Props & { close: () => void }) {
  const { tone, mark, word } = stateOf(session);
  return (
    <>
      <header className={classes.head}>
        <h2>
          {session.intent_shredded_by ? "(its intent was shredded by order)" : inert(session.intent ?? "")}
        </h2>
        <CloseButton size="sm" aria-label="Close the session" onClick={close} />
        <p>
          <Tag tone={tone}>
            <span aria-hidden>{mark}</span> {word}
          </Tag>{" "}
          {session.proof_grade ? "proof-grade" : "not proof-grade"} · {session.records}{" "}
          {session.records === 1 ? "record" : "records"} · began <Ago at={session.started_at} /> ·{" "}
          <Link to="/sessions/$sessionId" params={{ sessionId: session.session_id }}>
            its session
          </Link>
        </p>
      </header>
      <Check session={session} items={items} />
      <Sealing session={session} items={items} />
      {byTask(items).map((task) => (
        <section key={task.task_id} className={classes.task} aria-label={`Task ${task.task_id}`}>
          <h3>
            Task <Id id={task.task_id} length={20} />
          </h3>
          <ol>
            {task.items.map((item) => (
              <Record key={item.record_id} item={item} />
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}

function Record({ item }: { item: ThoughtItem }) {
  const [url, setUrl] = useUrl();
  const isOpen = url.record === item.record_id;
  const { mark, word } = TYPES[item.type] ?? { mark: "?", word: item.type };
  return (
    <li className={classes.record} id={item.record_id}>
      <div className={classes.line}>
        <b>
          <span aria-hidden>{mark}</span> {word}
        </b>
        <span className={classes.faint}>
          {item.index} · <Ago at={item.created_at} />
        </span>
        <button
          type="button"
          className={classes.link}
          aria-expanded={isOpen}
          onClick={() => setUrl({ record: isOpen ? null : item.record_id }, true)}
        >
          {isOpen ? "less" : "hashes and proof"}
        </button>
      </div>
      {item.content === null ? (
        <p className={classes.faint}>
          Its words were shredded by order of event {item.shredded_by?.toLocaleString("en")}; its hashes
          stand.
        </p>
      ) : (
        <dl className={classes.words}>
          {wordsOf(item.content).map(([name, text]) => (
            <div key={name}>
              {name && <dt>{name}</dt>}
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {isOpen && <Hashes item={item} />}
    </li>
  );
}

/** What its event says of a thought: the hash of its words, its link and its place. */
function toldOf({ record_id, session_id, index, content_hash, chain_hash, parent_chain_hash }: ThoughtItem) {
  return { record_id, session_id, index, content_hash, chain_hash, parent_chain_hash };
}

function Hashes({ item }: { item: ThoughtItem }) {
  const [, setUrl] = useUrl();
  return (
    <div className={classes.hashes}>
      <dl>
        <dt>content</dt>
        <dd>
          <Id id={item.content_hash} length={26} />
        </dd>
        <dt>chain</dt>
        <dd>
          <Id id={item.chain_hash} length={26} />
        </dd>
        <dt>after</dt>
        <dd>
          <Id id={item.parent_chain_hash} length={26} />
        </dd>
        <dt>by</dt>
        <dd>
          <Id id={item.author} length={26} />
        </dd>
        {item.references.length > 0 && (
          <>
            <dt>refers to</dt>
            <dd>
              {item.references.map((record) => (
                <button
                  key={record}
                  type="button"
                  className={classes.link}
                  onClick={() => {
                    setUrl({ record }, true);
                    document.getElementById(record)?.scrollIntoView({ block: "center" });
                  }}
                >
                  {record.slice(0, 16)}…
                </button>
              ))}
            </dd>
          </>
        )}
        {item.audit_event_ids.length > 0 && (
          <>
            <dt>goes by</dt>
            <dd>
              {item.audit_event_ids.map((event) => (
                <Link
                  key={event}
                  to="/forensics/$board"
                  params={{ board: "audit" }}
                  search={{ event } as never}
                >
                  event {event.slice(0, 14)}…
                </Link>
              ))}
            </dd>
          </>
        )}
        <dt>told by</dt>
        <dd>
          <Link
            to="/forensics/$board"
            params={{ board: "audit" }}
            search={{ event: item.audit_event_id } as never}
          >
            event {item.sequence_number.toLocaleString("en")}
          </Link>
        </dd>
      </dl>
      <ProofBadge audit_event_id={item.audit_event_id} about={{ body: toldOf(item) }} />
    </div>
  );
}
