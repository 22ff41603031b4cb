// State scrub: an agent's memory at any step of the spread; the slider goes through its steps.
import { NativeSelect, Slider } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { InfectionAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import classes from "./Fact.module.css";
import { moments } from "./scrubMoments";

export function Scrub({ answer }: { answer: InfectionAnswer }) {
  const [url, setUrl] = useUrl();
  const agents = answer.agents.flatMap((one) => (one.agent_id ? [one.agent_id] : []));
  const source = answer.source.agent_id ?? agents[0];
  const agent = url.holder && agents.includes(url.holder) ? url.holder : source;
  const { steps, chosen } = useMemo(() => moments(answer, agent, url.seq), [answer, agent, url.seq]);
  const seq = steps[chosen]?.sequence_number;
  const query = useApi(
    "/v1/memory",
    { agent, seq, limit: 50 },
    { keep: true, enabled: agent !== undefined && seq !== undefined },
  );
  if (!agent) return null;
  return (
    <Panel title="Memory at a step">
      <div className={classes.scrub}>
        <NativeSelect
          size="xs"
          label="of"
          data={agents}
          value={agent}
          onChange={(event) => setUrl({ holder: event.currentTarget.value, seq: null }, true)}
        />
        {steps.length > 1 && (
          <Slider
            size="sm"
            thumbLabel="Step of the spread"
            label={(n) => `#${steps[n]?.sequence_number ?? ""}`}
            min={0}
            max={steps.length - 1}
            step={1}
            value={chosen}
            onChange={(n) => setUrl({ seq: String(steps[n]?.sequence_number ?? "") }, true)}
          />
        )}
        {seq !== undefined && (
          <p className={classes.note}>
            after #{seq}, <Ago at={steps[chosen]?.at} />
            {chosen === 0 && steps[0]?.before ? ": just before it received the claim" : ""}
          </p>
        )}
        <Loaded query={query} rows={2}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <p className={classes.note}>Memory was empty.</p>
            ) : (
              <ul className={classes.memory} aria-label={`Memory of ${agent}`}>
                {items.map((one) => (
                  <li
                    key={one.fact_id}
                    data-claim={one.source_fact_id === answer.source.fact_id || undefined}
                  >
                    {one.source_fact_id === answer.source.fact_id && <Tag tone="alert">◉ the claim</Tag>}{" "}
                    {inert(one.text)}{" "}
                    <span className={classes.note}>
                      {one.held_by === "read" ? `read from ${one.agent_id}` : ""}
                    </span>
                  </li>
                ))}
                {next_cursor && <li className={classes.note}>older entries not shown</li>}
              </ul>
            )
          }
        </Loaded>
      </div>
    </Panel>
  );
}
