// The agent's audit events: newest first, by kind, each linked to its message or session.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { KINDS, type Kind, type Line, readKinds, toggledKind } from "../history";
import classes from "./Agent.module.css";
import type { Past } from "./useHistory";

const SHOWN = 400;

export function History({ history }: { history: Past }) {
  const [url, setUrl] = useUrl();
  const kinds = readKinds(url.kinds);
  const { lines, ready, whole, loading, problem, more, again } = history;
  const shown = kinds.length ? lines.filter((line) => kinds.includes(line.kind)) : lines;
  return (
    <Panel title="History" aside={ready && `${lines.length}${whole ? "" : "+"} events`}>
      <fieldset className={classes.kinds}>
        <legend className="unseen">Kinds of events</legend>
        {(Object.keys(KINDS) as Kind[]).map((kind) => (
          <button
            key={kind}
            type="button"
            aria-pressed={kinds.includes(kind)}
            onClick={() => setUrl({ kinds: toggledKind(kinds, kind) || null }, true)}
          >
            <span aria-hidden>{KINDS[kind].mark}</span> {KINDS[kind].word}{" "}
            <b>{lines.filter((line) => line.kind === kind).length}</b>
          </button>
        ))}
      </fieldset>
      {!ready && (problem ? <ErrorNotice problem={problem} again={again} /> : <Loading rows={5} />)}
      {ready && shown.length === 0 && (
        <Empty>{whole ? "No events of this kind." : "No events of this kind loaded yet."}</Empty>
      )}
      <ol className={classes.history}>
        {shown.slice(0, SHOWN).map((line) => (
          <Event key={line.id} line={line} open={(peek) => setUrl({ peek })} />
        ))}
      </ol>
      {ready && (
        <p className={classes.more}>
          {shown.length > SHOWN && (
            <span>{shown.length - SHOWN} more loaded; select a kind to see them. </span>
          )}
          {!whole && (
            <Button size="compact-xs" variant="default" loading={loading} onClick={more}>
              Load older
            </Button>
          )}
          {problem && <span role="alert">Not up to date: {problem.message}</span>}
        </p>
      )}
    </Panel>
  );
}

function Event({ line, open }: { line: Line; open: (peek: string) => void }) {
  const sign = KINDS[line.kind];
  return (
    <li>
      <Tag tone={sign.tone}>
        <span aria-hidden>{sign.mark}</span> {line.type.replaceAll("_", " ")}
      </Tag>
      <span className={classes.text} title={line.text}>
        {line.message_id ? (
          <button type="button" className={classes.link} onClick={() => open(`message:${line.message_id}`)}>
            {line.text}
          </button>
        ) : (
          line.text
        )}
      </span>
      {line.session_id && line.kind !== "message" && (
        <Link to="/sessions/$sessionId" params={{ sessionId: line.session_id }}>
          session
        </Link>
      )}
      <span className={classes.when}>
        <span title={line.id}>#{line.number}</span> <Ago at={line.at} />
      </span>
    </li>
  );
}
