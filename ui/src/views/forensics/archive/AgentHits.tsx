// Results by agent: each agent once, with its number of hits, first and last time, and its best quote.
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { Speaker, SpeakersAnswer } from "~/protocol/openapi";
import { usePeek, usePeekList } from "~/shell/peek";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { inert } from "~/widgets/inert";
import { Loaded } from "~/widgets/Panel";
import classes from "./AgentHits.module.css";
import { Quote } from "./Quote";
import { filtered } from "./queryPieces";
import type { Mode } from "./queryText";

const MAX_AGENTS = 500;

interface Props {
  q: string;
  mode: Mode;
  onAsk: (q: string) => void;
}

export function AgentHits({ q, mode }: Props) {
  const query = useApi(
    "/v1/search",
    { q, mode, group: "agent", limit: MAX_AGENTS },
    { every: 10_000, keep: true },
  );
  return (
    <Loaded query={query} rows={8}>
      {(data) => <Table answer={data as SpeakersAnswer} q={q} />}
    </Loaded>
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
        {plural(answer.items.length, "agent")}
        {q.trim() ? " with matches" : " recently active"}
        {answer.capped && ", counted over the newest messages"}; Enter lists an agent's messages, Space opens
        its panel
      </p>
      <Grid
        label="Agents with matches"
        columns={columns}
        rows={answer.items}
        keyOf={(one) => one.agent_id ?? "unknown"}
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
    { id: "agent", title: "Agent", width: 180, cell: (one) => inert(one.agent_id ?? "unknown") },
    {
      id: "count",
      title: "Hits",
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
      title: "Best quote",
      from: 640,
      cell: (one) => (one.best ? <Quote hit={one.best} /> : ""),
    },
  ];
}
