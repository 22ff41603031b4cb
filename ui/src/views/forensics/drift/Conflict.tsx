// One conflict: the values side by side, which agents hold each and its source, and its resolution. Nothing
// resolves itself: an operator picks the true value, and agents holding another value are sent a correction.
import { Button, Radio, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { reconcile } from "~/commands/facts";
import { plural } from "~/plural";
import type { ConflictItem } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Tag } from "~/widgets/Mark";
import { ErrorNotice, Panel } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import { agentsToCorrect, keyOf, sinceWhen } from "./conflicts";
import classes from "./Drift.module.css";

export function Conflict({
  conflict,
  where,
}: {
  conflict: ConflictItem;
  where: { kind: string; id: string };
}) {
  const names = useNames();
  const { reconciled } = conflict;
  return (
    <Panel
      title={conflict.subject}
      aside={<Tag tone={reconciled ? "idle" : "alert"}>{reconciled ? "✓ resolved" : "! open"}</Tag>}
    >
      <div className={classes.conflict}>
        <p className={classes.note}>
          In{" "}
          {where.kind === "session" ? (
            <Link to="/sessions/$sessionId" params={{ sessionId: where.id }}>
              session {where.id.slice(0, 8)}…
            </Link>
          ) : (
            `cluster ${where.id}`
          )}
          , since <Ago at={sinceWhen(conflict)} />
        </p>
        <div className={classes.sides}>
          {conflict.sides.map((side) => (
            <section key={side.value} className={classes.side} aria-label={`Value ${side.value}`}>
              <h3>{inert(side.value)}</h3>
              <ul>
                {side.holders.map((one) => (
                  <li key={`${one.fact_id} ${one.agent_id}`}>
                    {one.agent_id ? (
                      <Link to="/registry/$agentId" params={{ agentId: one.agent_id }}>
                        {one.agent_id}
                      </Link>
                    ) : (
                      "unknown"
                    )}
                    <span className={classes.note}>
                      <Ago at={one.at} />,{" "}
                      {one.session_id && (
                        <Link
                          to="/sessions/$sessionId"
                          params={{ sessionId: one.session_id }}
                          search={{ step: one.step ?? String(one.sequence_number) } as never}
                        >
                          #{one.sequence_number}
                        </Link>
                      )}{" "}
                      ·{" "}
                      <Link
                        to="/forensics/$board"
                        params={{ board: "infections" }}
                        search={{ fact: one.fact_id } as never}
                      >
                        view source
                      </Link>
                    </span>
                    <q>{inert(one.text)}</q>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </div>
        {conflict.note && <p className={classes.note}>{conflict.note}</p>}
        {reconciled && (
          <p className={classes.note}>
            Resolved to <b>{reconciled.value}</b> by {names(reconciled.decided_by)}{" "}
            <Ago at={reconciled.decided_at} />. Agents holding another value were sent a correction; the
            conflict closes when they state it.
          </p>
        )}
        <Ruling conflict={conflict} />
      </div>
    </Panel>
  );
}

const OTHER = " other";

function Ruling({ conflict }: { conflict: ConflictItem }) {
  const denied = useWhyNot("operate");
  const [draft, setDraft] = useDraft(`ruling ${keyOf(conflict)}`);
  const [other, setOther] = useState(draft !== null && !conflict.sides.some((side) => side.value === draft));
  const [sure, setSure] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const value = (draft ?? "").trim();
  const whom = agentsToCorrect(conflict, value);
  const choose = (picked: string) => {
    setOther(picked === OTHER);
    setDraft(picked === OTHER ? "" : picked);
    setSure(false);
    setProblem(null);
  };
  return (
    <div className={classes.ruling}>
      <Radio.Group
        size="xs"
        label="Which value is true?"
        value={other ? OTHER : (draft ?? "")}
        onChange={choose}
      >
        <div className={classes.picks}>
          {conflict.sides.map((side) => (
            <Radio key={side.value} size="xs" value={side.value} label={side.value} disabled={!!denied} />
          ))}
          <Radio size="xs" value={OTHER} label="neither" disabled={!!denied} />
        </div>
      </Radio.Group>
      {other && (
        <TextInput
          size="xs"
          label="The true value"
          description="a number with its unit, a date, yes or no, or a short name"
          value={draft ?? ""}
          onChange={(event) => {
            setDraft(event.currentTarget.value);
            setSure(false);
          }}
        />
      )}
      {problem && <ErrorNotice problem={problem} />}
      {problem && <p className={classes.note}>No correction was sent. Your choice is kept.</p>}
      {sure ? (
        <ConfirmInline
          danger={false}
          does={`Send ${value} to ${plural(whom.length, "agent")}`}
          onNo={() => setSure(false)}
          onYes={async () => {
            const answer = await reconcile(conflict.subject, conflict.scope, value, (refusal) => {
              setProblem(refusal);
              return true;
            });
            setSure(false);
            if (answer) {
              setDraft(null);
              setOther(false);
            }
          }}
        >
          <p>
            {whom.join(", ") || "No listed agent"} will receive in the inbox that {conflict.subject} is{" "}
            <b>{value}</b>. This cannot be undone, only resolved again; no agent is paused.
          </p>
        </ConfirmInline>
      ) : (
        <span>
          <Button
            size="compact-sm"
            disabled={denied !== undefined || value === ""}
            title={denied}
            onClick={() => setSure(true)}
          >
            Resolve…
          </Button>{" "}
          {denied && <span className={classes.note}>{denied}</span>}
        </span>
      )}
    </div>
  );
}
