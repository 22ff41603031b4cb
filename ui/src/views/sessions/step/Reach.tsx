// From a step outward: how far its output went and whom to pause (blast), where it came from (causes). Asked
// for by a button; the steps named are lit in the graph.
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useAnswer } from "~/api/questions";
import type { BlastAnswer, CausesAnswer, Pausing, SideEffect } from "~/protocol/openapi";
import { Money } from "~/widgets/Figures";
import { Shown } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { pauseAll } from "./acting";
import { type Lit, litByBlast, litByCauses } from "./lit";
import classes from "./Step.module.css";

interface Props {
  sessionId: string;
  sequence: number;
  goTo: (sequence_number: number) => void;
  light: (lit: Lit | null) => void;
}

export function Reach({ sessionId, sequence, goTo, light }: Props) {
  const [asked, setAsked] = useState<"blast" | "causes" | null>(null);
  const params = { step: sequence };
  const blast = useAnswer(
    "/v1/steps/{step}/blast",
    { session: sessionId, limit: 200 },
    { params, enabled: asked === "blast" },
  );
  const causes = useAnswer(
    "/v1/steps/{step}/causes",
    { session: sessionId },
    { params, enabled: asked === "causes" },
  );
  useEffect(() => {
    if (asked === "blast" && blast.data) light(litByBlast(blast.data, sequence));
    else if (asked === "causes" && causes.data) light(litByCauses(causes.data, sequence));
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
        <Shown asked={blast}>{(data) => <Blast data={data} {...{ sessionId, goTo }} />}</Shown>
      )}
      {asked === "causes" && (
        <Shown asked={causes}>{(data) => <Causes data={data} {...{ sessionId, goTo }} />}</Shown>
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
          ? "Nothing came of it yet."
          : `Its output went into ${counts.strong_steps} steps for certain and ${counts.weak_steps} perhaps, of ${counts.agents} agents in ${counts.sessions} ${counts.sessions === 1 ? "session" : "sessions"}.`}{" "}
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
                ? "built on it"
                : agent.strength === "weak"
                  ? "perhaps"
                  : "was sent it"}
              {agent.steps > 0 && `, ${agent.steps} steps, since `}
              {agent.steps > 0 && <Place place={agent.first} {...{ sessionId, goTo }} />}
            </li>
          ))}
        </ul>
      )}
      {data.side_effects.length > 0 && (
        <p>Tools called since: {data.side_effects.slice(0, 6).map(saidEffect).join(", ")}.</p>
      )}
      <h4 className={classes.small}>Fewest to pause</h4>
      {containment.contained ? (
        <p>Nobody: it does not go on from here. {containment.note}</p>
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

function saidEffect(one: SideEffect): string {
  const parts = [
    one.succeeded > 0 && `${one.succeeded} done`,
    one.failed > 0 && `${one.failed} failed`,
    one.pending > 0 && `${one.pending} pending`,
  ].filter(Boolean);
  return parts.length > 0 ? `${one.tool} (${parts.join(", ")})` : one.tool;
}

function PauseThem({ pauses }: { pauses: Pausing[] }) {
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
        await pauseAll(pauses);
        setBusy(false);
      }}
    >
      Pause {pauses.length === 1 ? pauses[0]?.agent_id : `these ${pauses.length}`}
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
  if (data.items.length === 0) return <p className={classes.none}>Nothing before it stands out.</p>;
  return (
    <div className={classes.result} role="status">
      <ol className={classes.causes}>
        {data.items.map((item) => (
          <li key={item.sequence_number}>
            <Place place={item} {...{ sessionId, goTo }} /> {item.agent_id}
            {item.tool && (
              <>
                {" "}
                <code>{item.tool}</code>
              </>
            )}{" "}
            <span className={classes.none}>
              {item.score} points
              {item.distance > 0 && `, ${item.distance} ${item.distance === 1 ? "step" : "steps"} before`}
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

/** A step by its number: here it is selected, elsewhere its session is opened there. */
export function Place({
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
