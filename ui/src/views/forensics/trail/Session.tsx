// One session of thoughts: its content by task, each record with its hashes and references, the seal, and the
// verification.
import { CloseButton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { get, type Problem } from "~/api/client";
import { plural } from "~/plural";
import { ProofBadge } from "~/proof/ProofBadge";
import type { ThoughtItem, ThoughtPage, ThoughtSessionItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Loaded } from "~/widgets/Panel";
import { Check, Sealing } from "./Sealing";
import classes from "./Trail.module.css";
import { byTask, stateOf, TYPES, wordsOf } from "./thoughtText";

const PATH = "/v1/sessions/{session_id}/thoughts";

/** All records: a session has dozens, and a root covers all of them. */
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
  const request = useThoughts(sessionId);
  return (
    <aside className={classes.panel} aria-label="Session of thoughts">
      <Loaded query={request} rows={10}>
        {({ session, items }) => <ThoughtSession session={session} items={items} close={close} />}
      </Loaded>
      {request.error && !request.data && <CloseButton aria-label="Close the session" onClick={close} />}
    </aside>
  );
}

interface Props {
  session: ThoughtSessionItem;
  items: ThoughtItem[];
}

function ThoughtSession({ session, items, close }: Props & { close: () => void }) {
  const { tone, mark, word } = stateOf(session);
  return (
    <>
      <header className={classes.head}>
        <h2>{session.intent_shredded_by ? "(intent shredded)" : inert(session.intent ?? "")}</h2>
        <CloseButton size="sm" aria-label="Close the session" onClick={close} />
        <p>
          <Tag tone={tone}>
            <span aria-hidden>{mark}</span> {word}
          </Tag>{" "}
          {session.proof_grade ? "proof-grade" : "not proof-grade"} · {plural(session.records, "record")} ·
          started <Ago at={session.started_at} /> ·{" "}
          <Link to="/sessions/$sessionId" params={{ sessionId: session.session_id }}>
            {" "}
            open session{" "}
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
          Its content was shredded by event {item.shredded_by?.toLocaleString("en")}; its hashes remain.
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

/** The event's data about a thought: its content hash, its link and its position. */
function eventFields({
  record_id,
  session_id,
  index,
  content_hash,
  chain_hash,
  parent_chain_hash,
}: ThoughtItem) {
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
        <dt>previous</dt>
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
            <dt>policy</dt>
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
        <dt>event</dt>
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
      <ProofBadge audit_event_id={item.audit_event_id} about={{ body: eventFields(item) }} />
    </div>
  );
}
