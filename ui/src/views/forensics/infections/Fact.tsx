// One fact: its origin and time, large; its spread, with the evidence of each step; the agents reached; and
// the actions. Marking false changes nothing for any agent; a quarantine pauses and corrects.
import { Button, Switch } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { unmark } from "~/commands/facts";
import { plural } from "~/plural";
import type { InfectionAnswer } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { MarkFalseForm, QuarantineForm } from "~/widgets/FactForms";
import { Ago, Money } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { Empty, ErrorNotice, Loading, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import deck from "../BoardLayout.module.css";
import { Evidence } from "./Evidence";
import classes from "./Fact.module.css";
import { reached } from "./hops";
import { Scrub } from "./Scrub";
import { Spread } from "./Spread";

export function Fact({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useApi(
    "/v1/facts/{fact_id}/infection",
    { limit: 500 },
    { params: { fact_id: id }, every: 5_000, keep: true },
  );
  useKeys({ Backspace: { says: "Back to all facts", run: onClose } }, "Fact");
  const back = (
    <nav className={deck.crumbs} aria-label="Drill-down">
      <button type="button" className={deck.link} onClick={onClose}>
        ‹ all facts
      </button>
    </nav>
  );
  if (!query.data)
    return (
      <section className={deck.deck} aria-label="Fact">
        {back}
        {query.error?.code === 404 ? (
          <Empty command="observatory demo --incident infection">
            There is no fact {id}. It may belong to another tenant, or it is not indexed yet: that takes a
            moment.
          </Empty>
        ) : query.error ? (
          <ErrorNotice problem={query.error} again={() => void query.refetch()} />
        ) : (
          <Loading rows={8} />
        )}
      </section>
    );
  return (
    <section className={deck.deck} aria-label={`Fact: ${inert(query.data.source.text)}`}>
      {back}
      {query.error && <p className={deck.stale}>Not up to date: {query.error.message}</p>}
      <Opened answer={query.data} />
    </section>
  );
}

function Opened({ answer }: { answer: InfectionAnswer }) {
  const [url, setUrl] = useUrl();
  const { source, fact, counts, spend } = answer;
  const weak = url.weak === "1";
  const { agents, after, sessions } = reached(answer);
  return (
    <div className={classes.page}>
      <header className={classes.who}>
        <p className={classes.claim}>
          {fact.marked_false && <Tag tone="alert">× marked false</Tag>} “{inert(source.text)}”
        </p>
        <h1 className={classes.started}>
          Originated by{" "}
          {source.agent_id ? (
            <Link to="/registry/$agentId" params={{ agentId: source.agent_id }}>
              {source.agent_id}
            </Link>
          ) : (
            "unknown agent"
          )}
          , <Ago at={answer.first_at} />
        </h1>
        <p className={classes.when}>
          {exact(answer.first_at)}
          {source.session_id && (
            <>
              , at{" "}
              <Link
                to="/sessions/$sessionId"
                params={{ sessionId: source.session_id }}
                search={
                  {
                    step: source.step ?? String(source.sequence_number),
                    fact: source.fact_id,
                    colour: "infection",
                  } as never
                }
              >
                step #{source.sequence_number} of session {source.session_id.slice(0, 8)}…
              </Link>
            </>
          )}
          . {plural(agents, "agent")} affected in {plural(sessions, "session")}; {after} more downstream.{" "}
          <Money dollars={spend.strong} /> spent by affected steps, <Money dollars={spend.weak} /> downstream.
        </p>
        {fact.fact_id !== source.fact_id && (
          <p className={classes.when}>
            You opened a copy by {fact.agent_id ?? "another agent"}: the original is shown.
          </p>
        )}
        <Acts answer={answer} />
      </header>
      <Panel
        title="Spread"
        aside={
          <Switch
            size="xs"
            labelPosition="left"
            label={`Show ${plural(counts.weak_steps, "downstream step")}`}
            checked={weak}
            onChange={(event) => setUrl({ weak: event.currentTarget.checked ? "1" : null }, true)}
          />
        }
      >
        <Spread answer={answer} weak={weak} />
        {answer.truncated && (
          <p className={classes.note}>It spread beyond the search limit; this is the known part.</p>
        )}
      </Panel>
      <div className={classes.columns}>
        <Panel title={`Evidence by step`}>
          <Evidence answer={answer} weak={weak} />
        </Panel>
        <div className={classes.column}>
          <Agents answer={answer} />
          <Scrub answer={answer} />
          <Others answer={answer} />
        </div>
      </div>
    </div>
  );
}

function Acts({ answer }: { answer: InfectionAnswer }) {
  const [form, setForm] = useState<"false" | "quarantine" | null>(null);
  const denied = useWhyNot("operate");
  const names = useNames();
  const off = { disabled: denied !== undefined, title: denied };
  const mark = answer.fact.marked_false;
  return (
    <div className={classes.acts}>
      {mark && (
        <p className={classes.when}>
          Marked false by {names(mark.marked_by)} <Ago at={mark.marked_at} />
          {mark.note ? `: ${mark.note}` : ""}
        </p>
      )}
      {form === null && (
        <div className={classes.buttons}>
          {mark ? (
            <Button
              size="compact-sm"
              variant="default"
              {...off}
              onClick={() => void unmark(answer.fact.fact_id)}
            >
              Undo mark as false
            </Button>
          ) : (
            <Button size="compact-sm" {...off} onClick={() => setForm("false")}>
              Mark false…
            </Button>
          )}
          <Button
            size="compact-sm"
            color="red"
            variant="light"
            {...off}
            onClick={() => setForm("quarantine")}
          >
            Quarantine…
          </Button>
          {denied && <span className={classes.note}>{denied}</span>}
        </div>
      )}
      {form === "false" && <MarkFalseForm fact={answer.fact.fact_id} done={() => setForm(null)} />}
      {form === "quarantine" && <QuarantineForm fact={answer.source.fact_id} done={() => setForm(null)} />}
    </div>
  );
}

function Agents({ answer }: { answer: InfectionAnswer }) {
  const [, setUrl] = useUrl();
  return (
    <Panel title={`Agents reached: ${answer.agents.length}`}>
      <ul className={classes.agents}>
        {answer.agents.slice(0, 100).map((one) => (
          <li key={one.agent_id}>
            <span title={one.strength === "strong" ? "affected" : "downstream"}>
              {one.strength === "strong" ? "●" : "○"}
            </span>
            <button
              type="button"
              className={deck.link}
              onClick={() => one.agent_id && setUrl({ peek: `agent:${one.agent_id}` })}
            >
              {one.agent_id ?? "unknown"}
            </button>
            <span className={classes.note}>
              {one.strength === "strong" ? "affected" : "downstream"},{" "}
              {plural(one.sessions.length, "session")}, <Money dollars={one.cost} />, first{" "}
              <Ago at={one.first.at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Others({ answer }: { answer: InfectionAnswer }) {
  const [, setUrl] = useUrl();
  const parts = [
    { title: "Paraphrases", facts: answer.copies },
    { title: "Facts added later by affected steps", facts: answer.later_facts },
    { title: "Stated independently", facts: answer.also_claimed },
  ].filter((part) => part.facts.length > 0);
  if (parts.length === 0) return null;
  return (
    <Panel title="Related facts">
      {parts.map(({ title, facts }) => (
        <div key={title} className={classes.others}>
          <h3>
            {title}: {facts.length}
          </h3>
          <ul>
            {facts.slice(0, 10).map((one) => (
              <li key={one.fact_id}>
                <button type="button" className={deck.link} onClick={() => setUrl({ fact: one.fact_id })}>
                  {inert(one.text)}
                </button>{" "}
                <span className={classes.note}>{one.agent_id}</span>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Panel>
  );
}
