// Every step affected by the claim, in time order, with its evidence: the kind and its source.
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { InfectedStep, InfectionAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import classes from "./Fact.module.css";
import { best, EVIDENCE } from "./hops";

const COLUMNS: Column<InfectedStep>[] = [
  {
    id: "agent",
    title: "Agent",
    cell: (step) => (
      <span>
        <span aria-hidden>{step.strength === "strong" ? "● " : "○ "}</span>
        {step.agent_id ?? "unknown"}
      </span>
    ),
  },
  {
    id: "why",
    title: "Evidence",
    width: "38%",
    cell: (step) => {
      const cause = best(step);
      if (!cause) return "–";
      const { word, means } = EVIDENCE[cause.kind];
      const others = step.evidence.length - 1;
      return (
        <span title={`${means}; weight ${cause.weight}`}>
          {word}
          {cause.kind !== "source" && `, from #${cause.from_sequence_number}`}
          {others > 0 && ` (+${others})`}
        </span>
      );
    },
  },
  {
    id: "step",
    title: "Step",
    width: 76,
    cell: (step) =>
      step.session_id ? (
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: step.session_id }}
          search={{ step: step.step ?? String(step.sequence_number) } as never}
        >
          #{step.sequence_number}
        </Link>
      ) : (
        `#${step.sequence_number}`
      ),
  },
  { id: "at", title: "When", width: 84, from: 480, cell: (step) => <Ago at={step.at} /> },
];

export function Evidence({ answer, weak }: { answer: InfectionAnswer; weak: boolean }) {
  const [url, setUrl] = useUrl();
  const rows = useMemo(
    () => answer.steps.filter((step) => weak || step.strength === "strong"),
    [answer, weak],
  );
  return (
    <div className={classes.evidence}>
      <Grid
        label="Evidence"
        columns={COLUMNS}
        rows={rows}
        keyOf={(step) => String(step.sequence_number)}
        current={url.at}
        onOpen={(step) => setUrl({ at: String(step.sequence_number) }, true)}
      />
    </div>
  );
}
