// Downstream and upstream of a step: blast radius with agents to pause, and root causes. Computed on request;
// the steps are highlighted in the graph.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import type { BlastAnswer, CausesAnswer, PauseCommand, SideEffect } from "~/protocol/openapi";
import { Money } from "~/widgets/Figures";
import { Loaded } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import { type Highlight, highlightBlast, highlightCauses } from "./highlight";
import classes from "./Step.module.css";
import { pauseMinimalCut } from "./stepCommands";

interface Props {
  sessionId: string;
  sequence: number;
  goTo: (sequence_number: number) => void;
  light: (lit: Highlight | null) => void;
}

export function BlastAndCauses({ sessionId, sequence, goTo, light }: Props) {
  const [asked, setAsked] = useState<"blast" | "causes" | null>(null);
  const params = { step: sequence };
  const blast = useApi(
    "/v1/steps/{step}/blast",
    { session: sessionId, limit: 200 },
    { params, enabled: asked === "blast" },
  );
  const causes = useApi(
    "/v1/steps/{step}/causes",
    { session: sessionId },
    { params, enabled: asked === "causes" },
  );
  useEffect(() => {
    if (asked === "blast" && blast.data) light(highlightBlast(blast.data, sequence));
    else if (asked === "causes" && causes.data) light(highlightCauses(causes.data, sequence));
  }, [asked, blast.data, causes.data, light, sequence]);
  const press = (what: "blast" | "causes") => {
    setAsked(asked === what ? null : what);
    if (asked === what) light(null);
  };
  return (
    <>
      <div className={classes.tools}>
        <Button
          size="compact-xs"
          variant={asked === "blast" ? "light" : "default"}
          aria-pressed={asked === "blast"}
          onClick={() => press("blast")}
        >
          Blast radius
        </Button>
        <Button
          size="compact-xs"
          variant={asked === "causes" ? "light" : "default"}
          aria-pressed={asked === "causes"}
          onClick={() => press("causes")}
        >
          Root cause
        </Button>
      </div>
      {asked === "blast" && (
        <Loaded query={blast}>{(data) => <Blast data={data} {...{ sessionId, goTo }} />}</Loaded>
      )}
      {asked === "causes" && (
        <Loaded query={causes}>{(data) => <Causes data={data} {...{ sessionId, goTo }} />}</Loaded>
      )}
    </>
  );
}

function Blast({
  data,
  sessionId,
  goTo,
}: {
  data: BlastAnswer;
  sessionId: string;
  goTo: (n: number) => void;
}) {
  const { counts, containment } = data;
  return (
    <div className={classes.result} role="status">
      <p>
        {counts.strong_steps + counts.weak_steps === 0
          ? "Nothing downstream yet."
          : `${plural(counts.strong_steps, "step")} affected (${counts.weak_steps} possible), ${plural(counts.agents, "agent")} in ${plural(counts.sessions, "session")}.`}{" "}
        Spent since: <Money dollars={data.spend.strong} />
        {data.spend.weak > 0 && (
          <>
            {" "}
            (+ <Money dollars={data.spend.weak} /> perhaps)
          </>
        )}
        .{data.truncated && " More than 200,000 steps: these figures are a lower bound."}
      </p>
      {data.agents.length > 0 && (
        <ul className={classes.plain} aria-label="Agents reached">
          {data.agents.slice(0, 12).map((agent) => (
            <li key={agent.agent_id}>
              <strong>{agent.agent_id}</strong>{" "}
              {agent.strength === "strong"
                ? "used it"
                : agent.strength === "weak"
                  ? "perhaps"
                  : "received it"}
              {agent.steps > 0 && `, ${plural(agent.steps, "step")}, since `}
              {agent.steps > 0 && <StepLink place={agent.first} {...{ sessionId, goTo }} />}
            </li>
          ))}
        </ul>
      )}
      {data.side_effects.length > 0 && (
        <p>Tools called since: {data.side_effects.slice(0, 6).map(effectText).join(", ")}.</p>
      )}
      <h4 className={classes.small}>Minimal cut set</h4>
      {containment.contained ? (
        <p>None: nothing spreads from here. {containment.note}</p>
      ) : (
        <>
          <ul className={classes.plain}>
            {containment.agents.map((agent) => (
              <li key={agent.agent_id}>
                <strong>{agent.agent_id}</strong>:{" "}
                {agent.reason.replace("since `edges_since`", "in the last 24 h")}
              </li>
            ))}
          </ul>
          <PauseThem pauses={containment.pause} />
        </>
      )}
    </div>
  );
}

function effectText(one: SideEffect): string {
  const parts = [
    one.succeeded > 0 && `${one.succeeded} done`,
    one.failed > 0 && `${one.failed} failed`,
    one.pending > 0 && `${one.pending} pending`,
  ].filter(Boolean);
  return parts.length > 0 ? `${one.tool} (${parts.join(", ")})` : one.tool;
}

function PauseThem({ pauses }: { pauses: PauseCommand[] }) {
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  if (pauses.length === 0) return null;
  return (
    <Button
      size="compact-xs"
      color="red"
      variant="light"
      loading={busy}
      disabled={denied !== undefined}
      title={denied}
      onClick={async () => {
        setBusy(true);
        await pauseMinimalCut(pauses);
        setBusy(false);
      }}
    >
      Pause {pauses.length === 1 ? pauses[0]?.agent_id : plural(pauses.length, "agent")}
    </Button>
  );
}

function Causes({
  data,
  sessionId,
  goTo,
}: {
  data: CausesAnswer;
  sessionId: string;
  goTo: (n: number) => void;
}) {
  const name = useNames();
  if (data.items.length === 0) return <p className={classes.none}>No likely cause found.</p>;
  return (
    <div className={classes.result} role="status">
      <ol className={classes.causes}>
        {data.items.map((item) => (
          <li key={item.sequence_number}>
            <StepLink place={item} {...{ sessionId, goTo }} /> {item.agent_id}
            {item.tool && (
              <>
                {" "}
                <code>{item.tool}</code>
              </>
            )}{" "}
            <span className={classes.none}>
              {item.score} points
              {item.distance > 0 && `, ${plural(item.distance, "step")} before`}
            </span>
            <ul className={classes.plain}>
              {item.reasons.map((reason) => (
                <li key={reason.sign}>{reason.text.replace(/usr_[\w-]+/g, name)}</li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
      <p className={classes.none}>{data.note}</p>
    </div>
  );
}

/** A step by its number: selected here, or opened in its session. */
export function StepLink({
  place,
  sessionId,
  goTo,
}: {
  place: { sequence_number: number; session_id: string | null };
  sessionId: string;
  goTo: (n: number) => void;
}) {
  if (place.session_id === null || place.session_id === sessionId)
    return (
      <button type="button" className={classes.link} onClick={() => goTo(place.sequence_number)}>
        #{place.sequence_number}
      </button>
    );
  return (
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: place.session_id }}
      search={{ step: String(place.sequence_number) } as never}
      className={classes.link}
    >
      #{place.sequence_number} in another session
    </Link>
  );
}
