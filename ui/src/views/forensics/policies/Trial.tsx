// A rule tested against the archive: how many of the last messages it would have stopped, whose, with
// examples. It changes nothing; the result applies to the rule as it was tested.

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Problem, send } from "~/api/client";
import { plural } from "~/plural";
import type { DryRunAnswer, RuleBody, StoppedAgent } from "~/protocol/openapi";
import { usePeek } from "~/shell/peek";
import { Tag } from "~/widgets/Mark";
import { ErrorNotice } from "~/widgets/Panel";
import classes from "./Policies.module.css";
import { type Effect, foundOf, isSilenced, stopped, textOf } from "./rules";

export interface RuleTrial {
  /** For the rule as it is in the form; null if it was not tested in this form. */
  found: DryRunAnswer | null;
  /** For its previous version. */
  earlier: DryRunAnswer | null;
  busy: boolean;
  problem: Problem | null;
  minutes: number;
  over: (minutes: number) => void;
  run: () => Promise<void>;
}

export function useTrial(body: RuleBody): RuleTrial {
  const [tried, setTried] = useState<{ of: string; answer: DryRunAnswer } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [minutes, over] = useState(60);
  // The note does not change what it would stop; the switch changes whether it does.
  const of = textOf({ ...body, note: "" });
  const run = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const answer = await send("POST /v1/policies/dry-run", { body: { rule: body, minutes } });
      setTried({ of, answer });
    } catch (error) {
      setProblem(error as Problem);
    }
    setBusy(false);
  };
  const holds = tried?.of === of;
  return {
    found: holds ? tried.answer : null,
    earlier: tried && !holds ? tried.answer : null,
    busy,
    problem,
    minutes,
    over,
    run,
  };
}

export function Danger({ says }: { says: readonly string[] }) {
  return (
    <div className={classes.danger} role="alert">
      {says.map((one) => (
        <p key={one}>! {one}</p>
      ))}
    </div>
  );
}

export function TrialResult({ trial, effect }: { trial: RuleTrial; effect: Effect }) {
  if (trial.problem) return <ErrorNotice problem={trial.problem} again={() => void trial.run()} />;
  if (trial.earlier)
    return <p className={classes.faint}>The rule was changed since it was tested. Test it again.</p>;
  const found = trial.found;
  if (!found)
    return (
      <p className={classes.faint}>Dry run over the archive: what this rule alone would have stopped.</p>
    );
  return (
    <>
      <p className={classes.found} role="status">
        {foundOf(effect, found)}
      </p>
      {found.unreadable > 0 && (
        <p className={classes.faint}>
          {plural(found.unreadable, "message was", "messages were")} shredded and could not be checked.
        </p>
      )}
      {found.by_agent.length > 0 && (
        <ul className={classes.agents} aria-label="Agents it would have stopped">
          {found.by_agent.slice(0, 8).map((one) => (
            <StoppedAgentRow key={one.agent_id} agent={one} />
          ))}
        </ul>
      )}
      {found.by_agent.length > 8 && (
        <p className={classes.faint}>
          and {found.by_agent.length - 8}
          {found.by_agent.length === 100 ? " or more" : ""} others
        </p>
      )}
      {found.examples.length > 0 && <Examples found={found} />}
    </>
  );
}

function StoppedAgentRow({ agent }: { agent: StoppedAgent }) {
  const { open } = usePeek();
  const sent = agent.sent ?? 0;
  return (
    <li>
      <span>
        <button type="button" className={classes.link} onClick={() => open(`agent:${agent.agent_id}`)}>
          {agent.agent_id}
        </button>{" "}
        {isSilenced(agent) && <Tag tone="alert">all its messages</Tag>}
      </span>
      <span>
        {stopped(agent)} of {sent}
      </span>
      <span className={classes.track} aria-hidden>
        <span style={{ width: `${sent ? (100 * stopped(agent)) / sent : 0}%` }} />
      </span>
    </li>
  );
}

function Examples({ found }: { found: DryRunAnswer }) {
  const [all, setAll] = useState(false);
  const shown = all ? found.examples : found.examples.slice(0, 5);
  return (
    <>
      <h3>Examples</h3>
      <ul className={classes.examples} aria-label="Messages it would have stopped">
        {shown.map((one) => (
          <li key={one.sequence_number}>
            <Link
              className={classes.link}
              to="/forensics/message/$messageId"
              params={{ messageId: one.message_id }}
              search={{}}
            >
              message {one.sequence_number.toLocaleString("en")}
            </Link>{" "}
            {one.message_type} of {one.agent_id}
            {one.recipient && ` to ${one.recipient}`}
            {one.tool && `, ${one.tool}`}
          </li>
        ))}
      </ul>
      {!all && found.examples.length > shown.length && (
        <button type="button" className={classes.link} onClick={() => setAll(true)}>
          {found.examples.length - shown.length} more
        </button>
      )}
    </>
  );
}
