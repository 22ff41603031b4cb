// Who spoke of it: each agent once, with how often, from when to when, and its best quote.
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { Speaker, SpeakersAnswer } from "~/protocol/openapi";
import { usePeek, usePeekList } from "~/shell/peeking";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Shown } from "~/widgets/Panel";
import { Quote } from "./Quote";
import { filtered } from "./question";
import type { Mode } from "./reading";
import classes from "./Speakers.module.css";

const MOST = 500;

interface Props {
  q: string;
  mode: Mode;
  onAsk: (q: string) => void;
}

export function Speakers({ q, mode }: Props) {
  const asked = useAnswer(
    "/v1/search",
    { q, mode, group: "agent", limit: MOST },
    { every: 10_000, keep: true },
  );
  return (
    <Shown asked={asked} rows={8}>
      {(data) => <Table answer={data as SpeakersAnswer} q={q} />}
    </Shown>
  );
}

function Table({ answer, q }: { answer: SpeakersAnswer; q: string }) {
  const navigate = useNavigate();
  const { peek, open } = usePeek();
  const most = Math.max(1, ...answer.items.map((one) => one.count));
  const columns = useMemo((): Column<Speaker>[] => columnsOf(most), [most]);
  usePeekList(answer.items.flatMap((one) => (one.agent_id ? [`agent:${one.agent_id}`] : [])).slice(0, 300));
  return (
    <>
      <p className={classes.sum} role="status">
        {answer.items.length} {answer.items.length === 1 ? "agent" : "agents"}
        {q.trim() ? " spoke of it" : " spoke lately"}
        {answer.capped && ", counted over the newest messages"}; Enter lists what one said, Space peeks at it
      </p>
      <Grid
        label="Agents that spoke of it"
        columns={columns}
        rows={answer.items}
        keyOf={(one) => one.agent_id ?? "nobody"}
        current={peek?.kind === "agent" ? peek.id : undefined}
        onOpen={(one) => {
          if (one.agent_id)
            void navigate({
              to: "/forensics",
              search: { q: filtered(q, "agent", one.agent_id) } as never,
            });
        }}
        onPeek={(one) => one.agent_id && open(`agent:${one.agent_id}`)}
      />
    </>
  );
}

function columnsOf(most: number): Column<Speaker>[] {
  return [
    { id: "agent", title: "Agent", width: 180, cell: (one) => inert(one.agent_id ?? "nobody known") },
    {
      id: "count",
      title: "Times",
      width: 120,
      cell: (one) => (
        <span className={classes.times}>
          <span>{one.count.toLocaleString("en")}</span>
          <span className={classes.bar} aria-hidden>
            <span style={{ width: `${(100 * one.count) / most}%` }} />
          </span>
        </span>
      ),
    },
    { id: "first", title: "First", width: 96, from: 560, cell: (one) => <Ago at={one.first_at} /> },
    { id: "last", title: "Last", width: 96, from: 420, cell: (one) => <Ago at={one.last_at} /> },
    {
      id: "best",
      title: "Its best quote",
      from: 640,
      cell: (one) => (one.best ? <Quote hit={one.best} /> : ""),
    },
  ];
}
