// The hits as a table: agent, text with the matching words marked, match reason, time.
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useSyncExternalStore } from "react";
import { usePeek, usePeekList } from "~/shell/peek";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { ErrorNotice } from "~/widgets/Panel";
import classes from "./Hits.module.css";
import { isHere, type Pages, type Row } from "./pages";
import { Quote } from "./Quote";
import { whyOf } from "./queryText";

/** Rows around the peeked one that J and K can reach. */
const LISTED = 150;
export const TONES: Record<string, string> = { held: "blocked", refused: "violation", rejected: "alert" };

const here =
  (cell: (hit: Exclude<Row, { absent: true }>) => React.ReactNode) =>
  (row: Row): React.ReactNode =>
    isHere(row) ? cell(row) : <span className={classes.absent} />;

const WHEN: Column<Row> = { id: "at", title: "When", width: 92, cell: here((hit) => <Ago at={hit.at} />) };
const AGENT: Column<Row> = {
  id: "agent",
  title: "Agent",
  width: 150,
  from: 420,
  cell: here((hit) => inert(hit.agent_id ?? "unknown")),
};
const SAID: Column<Row> = {
  id: "said",
  title: "Message",
  cell: here((hit) => <Quote hit={hit} />),
};
const WHY: Column<Row> = {
  id: "why",
  title: "Match",
  width: 150,
  from: 720,
  cell: here((hit) => <span title={whyOf(hit).whole}>{whyOf(hit).short}</span>),
};
const TYPE: Column<Row> = {
  id: "type",
  title: "Type",
  width: 128,
  from: 860,
  cell: here((hit) => hit.message_type.replaceAll("_", " ")),
};
const STATE: Column<Row> = {
  id: "state",
  title: "Status",
  width: 104,
  from: 560,
  cell: here((hit) =>
    hit.state !== "forwarded" ? (
      <Tag tone={TONES[hit.state] ?? "idle"}>{hit.state}</Tag>
    ) : hit.status === "failure" ? (
      <Tag tone="alert">failure</Tag>
    ) : (
      (hit.status ?? "")
    ),
  ),
};
const RANKED = [WHEN, AGENT, SAID, WHY, STATE, TYPE];
const LISTING = [WHEN, AGENT, SAID, STATE, TYPE];

const keyOf = (row: Row) => (isHere(row) ? row.message_id : row.key);

interface Props {
  pages: Pages;
  isRanked: boolean;
  onTop: (isTop: boolean) => void;
}

export function Hits({ pages, isRanked, onTop }: Props) {
  const version = useSyncExternalStore(pages.watch, () => pages.version);
  const navigate = useNavigate();
  const { peek, open } = usePeek();
  const current = peek?.kind === "message" ? peek.id : undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows change in place, their version signals it
  const listed = useMemo(() => {
    // Computed only while one is peeked at: there may be a million.
    const is = (row: Row) => isHere(row) && row.message_id === current;
    const at = current === undefined ? -1 : pages.rows.findIndex(is);
    const around = pages.rows.slice(Math.max(0, at - LISTED), Math.max(0, at) + LISTED);
    return around.filter(isHere).map((hit) => `message:${hit.message_id}`);
  }, [pages, version, current]);
  usePeekList(listed);
  return (
    <>
      <Grid<Row>
        label="Messages"
        columns={isRanked ? RANKED : LISTING}
        rows={pages.rows}
        keyOf={keyOf}
        current={current}
        onOpen={(row) => {
          if (isHere(row))
            void navigate({ to: "/forensics/message/$messageId", params: { messageId: row.message_id } });
        }}
        onPeek={(row) => {
          if (isHere(row)) open(`message:${row.message_id}`);
        }}
        onSeen={(first, last) => {
          onTop(first === 0);
          pages.see(first, last);
        }}
      />
      {pages.trouble && <ErrorNotice problem={pages.trouble} again={() => pages.again()} />}
    </>
  );
}
