// Step panel: intent, action, outcome and cost of one step. The full details are one button away, in its
// session. Its id is `SESSION/STEP`.
import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { StepAnswer } from "~/protocol/openapi";
import { Ago, Id, Money } from "~/widgets/Figures";
import { ms, short } from "~/widgets/format";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "./peeks.module.css";

const TONES: Record<string, string> = { held: "blocked", refused: "violation", rejected: "alert" };

export function StepPeek({ id }: { id: string }) {
  const slash = id.indexOf("/");
  const session_id = id.slice(0, slash);
  const step = id.slice(slash + 1);
  const query = useApi("/v1/sessions/{session_id}/steps/{step}", undefined, {
    params: { session_id, step },
    enabled: slash > 0,
  });
  if (slash < 1) return <Empty>Invalid step link: expected SESSION/STEP.</Empty>;
  return (
    <div className={classes.peek}>
      <Loaded query={query} rows={8}>
        {(data) => <Seen step={data} />}
      </Loaded>
    </div>
  );
}

function Seen({ step }: { step: StepAnswer }) {
  const navigate = useNavigate();
  const reasoning = step.reasoning as { intent?: string | null; chain?: string[] };
  const input = step.input as { tool_input?: string | null };
  const output = step.output as { text?: string | null; duration_ms?: number | null };
  const href = `/sessions/${encodeURIComponent(step.session_id)}?step=${encodeURIComponent(step.step_id ?? step.id)}`;
  const chain = reasoning.chain ?? [];
  return (
    <>
      <div>
        <Tag tone={TONES[step.state ?? ""] ?? (step.status === "failure" ? "alert" : "idle")}>
          {step.state === "forwarded" ? (step.status ?? step.badge) : step.state}
        </Tag>{" "}
        {step.low_confidence && <Tag tone="violation">⚑ low confidence</Tag>}
        <h3 className={classes.title}>{reasoning.intent ?? step.intent ?? step.message_type}</h3>
        {step.agent_id}, <Ago at={step.at} />
      </div>
      <Button onClick={() => void navigate({ href })}>Open step in session</Button>
      <dl className={classes.facts}>
        <dt>Tool</dt>
        <dd>{step.tool ?? "none"}</dd>
        <dt>Duration</dt>
        <dd>{ms(output.duration_ms)}</dd>
        <dt>Cost</dt>
        <dd>
          <Money dollars={step.cost} />,{" "}
          {step.tokens == null ? "tokens not reported" : `${short(step.tokens)} tokens`}
        </dd>
        <dt>Confidence</dt>
        <dd>{step.confidence == null ? "–" : `${Math.round(step.confidence * 100)} %`}</dd>
        <dt>Model</dt>
        <dd>{step.model ?? "–"}</dd>
        <dt>Number</dt>
        <dd>#{step.sequence_number}</dd>
        <dt>Step</dt>
        <dd>
          <Id id={step.step_id ?? step.id} />
        </dd>
      </dl>
      {step.held_because && <p>Held: {step.held_because}</p>}
      {chain.length > 0 && (
        <div>
          <strong>Reasoning</strong>
          <ol>
            {chain.map((line, n) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a looping agent may repeat the same text
              <li key={n}>{line}</li>
            ))}
          </ol>
        </div>
      )}
      {input.tool_input && <Json value={input.tool_input} label="Tool input" />}
      {output.text && <p>{output.text}</p>}
    </>
  );
}
