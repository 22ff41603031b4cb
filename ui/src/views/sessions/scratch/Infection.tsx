// How far one claim spread, in a few lines: where it began, who says it too, who only came after, what it
// cost. The same marks stand in the graph.
import { Button } from "@mantine/core";
import { useState } from "react";
import { useAnswer } from "~/api/questions";
import { useUrl } from "~/useUrl";
import { QuarantineFact } from "~/widgets/FactForms";
import { Ago, Money } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Place } from "../step/Reach";
import classes from "./Scratch.module.css";

export function Infection({
  fact,
  at,
  asked: chosen,
  sessionId,
  goTo,
}: {
  fact: string;
  at: number | null;
  asked: boolean;
  sessionId: string;
  goTo: (sequence_number: number) => void;
}) {
  const [, setUrl] = useUrl();
  const denied = useWhyNot("operate");
  const [stops, setStops] = useState(false);
  const asked = useAnswer("/v1/facts/{fact_id}/infection", { limit: 500 }, { params: { fact_id: fact } });
  return (
    <section className={classes.infection} aria-label="How far it spread">
      <Shown asked={asked} rows={2}>
        {(data) => {
          const by = data.steps.filter(
            (step) =>
              step.sequence_number !== data.source.sequence_number &&
              (at === null || step.sequence_number <= at),
          );
          const strong = by.filter((step) => step.strength === "strong").length;
          return (
            <>
              <p>
                {data.fact.marked_false && <Tag tone="alert">× marked false</Tag>}{" "}
                <strong>“{data.source.text}”</strong>
              </p>
              <p>
                ◉ first said by {data.source.agent_id} <Place place={data.source} {...{ sessionId, goTo }} />{" "}
                <Ago at={data.first_at} />. ● {strong} {strong === 1 ? "step says" : "steps say"} it too, ○{" "}
                {by.length - strong} only came after{at !== null && ` by #${at}`}; {data.agents.length}{" "}
                agents, <Money dollars={data.spend.strong} /> spent on it.
              </p>
              {data.agents.length > 0 && (
                <p className={classes.faint}>
                  {data.agents.slice(0, 10).map((agent, n) => (
                    <span key={agent.agent_id}>
                      {n > 0 && ", "}
                      {agent.strength === "strong" ? "●" : "○"} {agent.agent_id}{" "}
                      <Place place={agent.first} {...{ sessionId, goTo }} />
                    </span>
                  ))}
                </p>
              )}
              {stops ? (
                <QuarantineFact fact={data.source.fact_id} done={() => setStops(false)} />
              ) : (
                <div className={classes.tools}>
                  <Button
                    size="compact-xs"
                    variant="default"
                    disabled={denied !== undefined}
                    title={denied}
                    onClick={() => setStops(true)}
                  >
                    Quarantine…
                  </Button>
                  {chosen && (
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      onClick={() => setUrl({ fact: null, colour: null })}
                    >
                      Stop tracing
                    </Button>
                  )}
                </div>
              )}
            </>
          );
        }}
      </Shown>
    </section>
  );
}
