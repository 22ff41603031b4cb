// The spread of one claim in a few lines: origin, affected steps, downstream steps, cost. The graph uses the
// same marks.
import { Button } from "@mantine/core";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import { useUrl } from "~/useUrl";
import { QuarantineForm } from "~/widgets/FactForms";
import { Ago, Money } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { StepLink } from "../step/BlastAndCauses";
import classes from "./Scratch.module.css";

export function Infection({
  fact,
  at,
  query: chosen,
  sessionId,
  goTo,
}: {
  fact: string;
  at: number | null;
  query: boolean;
  sessionId: string;
  goTo: (sequence_number: number) => void;
}) {
  const [, setUrl] = useUrl();
  const denied = useWhyNot("operate");
  const [stops, setStops] = useState(false);
  const query = useApi("/v1/facts/{fact_id}/infection", { limit: 500 }, { params: { fact_id: fact } });
  return (
    <section className={classes.infection} aria-label="Spread">
      <Loaded query={query} rows={2}>
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
                ◉ origin: {data.source.agent_id} <StepLink place={data.source} {...{ sessionId, goTo }} />{" "}
                <Ago at={data.first_at} />. ● {plural(strong, "step")} affected, ○ {by.length - strong}{" "}
                downstream
                {at !== null && ` by #${at}`}; {data.agents.length} agents,{" "}
                <Money dollars={data.spend.strong} /> spent on it.
              </p>
              {data.agents.length > 0 && (
                <p className={classes.faint}>
                  {data.agents.slice(0, 10).map((agent, n) => (
                    <span key={agent.agent_id}>
                      {n > 0 && ", "}
                      {agent.strength === "strong" ? "●" : "○"} {agent.agent_id}{" "}
                      <StepLink place={agent.first} {...{ sessionId, goTo }} />
                    </span>
                  ))}
                </p>
              )}
              {stops ? (
                <QuarantineForm fact={data.source.fact_id} done={() => setStops(false)} />
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
      </Loaded>
    </section>
  );
}
