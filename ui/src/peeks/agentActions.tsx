// Agent actions, each with its consequence written on it. Irreversible ones ask for confirmation in place,
// without a dialog.
import { Button, Select, Textarea } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import {
  evict,
  lift,
  newestSession,
  pauseEverywhere,
  quarantine,
  quarantineOf,
  unpauseEverywhere,
} from "~/commands/agents";
import { inject } from "~/commands/session";
import { showToast } from "~/commands/toasts";
import type { AgentItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { useWhyNot } from "~/widgets/users";
import classes from "./agent.module.css";
import { useSessionsOf } from "./agentSessions";

type Asking = "inject" | "quarantine" | "evict" | null;

export function AgentActions({ agent }: { agent: AgentItem }) {
  const id = agent.agent_id;
  const navigate = useNavigate();
  const [asking, setAsking] = useState<Asking>(null);
  const [busy, setBusy] = useState(false);
  const sessions = useSessionsOf(id).data?.items ?? [];
  const denied = useWhyNot("operate");
  const rules = useApi("/v1/policies", {}, { every: 10_000, keep: true });
  const rule = quarantineOf(id, rules.data?.items ?? []);
  const paused = sessions.filter((one) => one.paused).length;
  const isPaused = agent.paused_at !== null;
  const run = async (what: () => Promise<unknown>) => {
    setBusy(true);
    await what();
    setBusy(false);
    setAsking(null);
  };
  const inspect = async () => {
    const found = await newestSession(id).catch(() => null);
    if (!found) showToast({ tone: "plain", text: `${id} has no session yet.` });
    else
      await navigate({
        to: "/sessions/$sessionId",
        params: { sessionId: found.session_id },
        search: (found.last_step ? { step: found.last_step } : {}) as never,
      });
  };
  return (
    <section className={classes.acts} aria-label="Actions">
      {agent.paused_at !== null && (
        <p className={classes.notice} role="status">
          <span title={`by ${agent.paused_by}`}>
            ‖ Paused in all sessions <Ago at={agent.paused_at} />: its messages are held, also in sessions
            that begin later.
          </span>
        </p>
      )}
      {rule && (
        <p className={classes.notice} role="status">
          <span title={`by ${rule.updated_by}`}>
            ‖ In quarantine since <Ago at={rule.created_at} />: everything it sends is refused.
          </span>
          <Button
            size="compact-xs"
            loading={busy}
            disabled={denied !== undefined}
            title={denied}
            onClick={() => void run(() => lift(id, rule.rule_id))}
          >
            Lift the quarantine
          </Button>
        </p>
      )}
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="filled" onClick={() => void inspect()}>
          Inspect newest session
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          loading={busy}
          disabled={isPaused || denied !== undefined}
          title={denied ?? (isPaused ? "Already paused in all sessions" : undefined)}
          onClick={() => void run(() => pauseEverywhere(id))}
        >
          Pause in all sessions: hold its messages
        </Button>
        {(isPaused || paused > 0) && (
          <Button
            size="compact-sm"
            variant="default"
            loading={busy}
            disabled={denied !== undefined}
            title={denied}
            onClick={() => void run(() => unpauseEverywhere(id))}
          >
            Resume in all sessions{paused > 0 && ` (${paused})`}: send held messages
          </Button>
        )}
        <Button
          size="compact-sm"
          variant="default"
          disabled={sessions.length === 0 || denied !== undefined}
          title={denied}
          aria-expanded={asking === "inject"}
          onClick={() => setAsking(asking === "inject" ? null : "inject")}
        >
          Inject…
        </Button>
        {!rule && (
          <Button
            size="compact-sm"
            variant="default"
            disabled={denied !== undefined}
            title={denied}
            aria-expanded={asking === "quarantine"}
            onClick={() => setAsking(asking === "quarantine" ? null : "quarantine")}
          >
            Quarantine…
          </Button>
        )}
        <Button
          size="compact-sm"
          variant="default"
          disabled={agent.liveness === "evicted" || denied !== undefined}
          title={denied}
          aria-expanded={asking === "evict"}
          onClick={() => setAsking(asking === "evict" ? null : "evict")}
        >
          Evict…
        </Button>
      </div>
      {asking === "inject" && <Inject id={id} sessions={sessions} done={() => setAsking(null)} />}
      {asking === "quarantine" && (
        <Sure
          says={`Every message of ${id} is refused and recorded, in all sessions, new ones included. Heartbeats still pass. It applies until you lift it; messages refused in the meantime stay refused.`}
          button={`Refuse everything ${id} sends`}
          busy={busy}
          yes={() => void run(() => quarantine(id))}
          no={() => setAsking(null)}
        />
      )}
      {asking === "evict" && (
        <Sure
          says={`${id} leaves the map and its channels; unacknowledged work goes to another agent of its type. History is kept. Its next heartbeat or message brings it back: to stop it, use quarantine.`}
          button={`Evict ${id} and reassign its work`}
          busy={busy}
          yes={() => void run(() => evict(id))}
          no={() => setAsking(null)}
        />
      )}
    </section>
  );
}

function Sure({
  says,
  button,
  busy,
  yes,
  no,
}: {
  says: string;
  button: string;
  busy: boolean;
  yes: () => void;
  no: () => void;
}) {
  return (
    <div className={classes.sure}>
      <p>{says}</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" color="red" loading={busy} onClick={yes}>
          {button}
        </Button>
        <Button size="compact-sm" variant="default" onClick={no} data-autofocus>
          Cancel
        </Button>
      </div>
    </div>
  );
}

interface Where {
  session_id: string;
  goal: string | null;
  active: boolean;
}

function Inject({ id, sessions, done }: { id: string; sessions: readonly Where[]; done: () => void }) {
  const [session, setSession] = useState<string | null>(sessions[0]?.session_id ?? null);
  const [prompt, setPrompt] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!session) return;
    setBusy(true);
    const answer = await inject(session, id, prompt.trim());
    setBusy(false);
    if (answer) done();
  };
  return (
    <form
      className={classes.sure}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Select
        size="xs"
        label="Session"
        data={sessions.map((one) => ({
          value: one.session_id,
          label: `${one.goal ?? one.session_id}${one.active ? "" : " (quiet)"}`,
        }))}
        value={session}
        onChange={setSession}
        allowDeselect={false}
      />
      <Textarea
        size="xs"
        label="Prompt"
        autosize
        minRows={2}
        maxRows={8}
        value={prompt}
        onChange={(event) => setPrompt(event.currentTarget.value)}
        placeholder="Stop searching; use the 10-K of 2025."
      />
      <div className={classes.buttons}>
        <Button type="submit" size="compact-sm" loading={busy} disabled={!session || prompt.trim() === ""}>
          Inject into {id}'s next context
        </Button>
        <Button size="compact-sm" variant="default" onClick={done}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
