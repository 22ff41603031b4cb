// Entropy alerts as rows: the repeated call, the detector, and one click that pauses the agent and opens the
// session page at the looping step.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { get } from "~/api/client";
import { useApi } from "~/api/queries";
import { pause } from "~/commands/session";
import { useEvents } from "~/live/useLive";
import { plural } from "~/plural";
import type { AlertItem, MessageItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { plain } from "~/widgets/loopText";
import { Tag } from "~/widgets/Mark";
import { Loaded, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "./LoopAlerts.module.css";
import {
  type AlarmEvent,
  alarmId,
  detectorOf,
  durationOf,
  type Step,
  sentence,
  withEvents,
} from "./openLoopAlerts";
import { PauseChoice } from "./PauseChoice";
import { goalOf, type SessionRow } from "./session";

/** An event that came this shortly before a response may not be in it yet. */
const OVERLAP_MS = 3_000;

export function useAlarms() {
  const request = useApi("/v1/entropy/alerts", { limit: 100 }, { every: 15_000 });
  const [heard, setHeard] = useState<{ at: number; event: AlarmEvent }[]>([]);
  useEvents<AlarmEvent>("gateway:entropy_alerts", (events) => {
    const at = Date.now();
    setHeard((before) => [...before, ...events.map((event) => ({ at, event }))].slice(-200));
  });
  useEffect(() => {
    setHeard((before) => before.filter(({ at }) => at > request.dataUpdatedAt - OVERLAP_MS));
  }, [request.dataUpdatedAt]);
  const data = useMemo(
    () =>
      request.data &&
      withEvents(
        request.data.items,
        heard.map(({ event }) => event),
      ),
    [request.data, heard],
  );
  return { data, error: request.error, isPending: request.isPending, refetch: request.refetch };
}

export function LoopAlerts({ sessions }: { sessions: ReadonlyMap<string, SessionRow> }) {
  const request = useAlarms();
  const count = request.data?.length ?? 0;
  return (
    <Panel title="Entropy alerts" aside={count > 0 ? `${count} open` : undefined}>
      <Loaded query={request} rows={1}>
        {(alarms) =>
          alarms.length === 0 ? (
            <p className={classes.calm}>
              No agent is looping. Both detectors watch {plural(sessions.size, "session")}.
            </p>
          ) : (
            <ul className={classes.rows}>
              {alarms.map((alarm) => (
                <Alarm key={alarmId(alarm)} alarm={alarm} session={sessions.get(alarm.session_id)} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Alarm({ alarm, session }: { alarm: AlertItem; session: SessionRow | undefined }) {
  const steps = useSteps(alarm);
  const navigate = useNavigate();
  const [choosing, setChoosing] = useState(false);
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const alertText = sentence(alarm, steps ? durationOf(alarm, steps) : null);
  const detector = detectorOf(alarm);
  const step = steps?.find((one) => one.sequence_number === alarm.sequence_number)?.step_id;
  const inspect = (agent: string | null) =>
    navigate({
      to: "/sessions/$sessionId",
      params: { sessionId: alarm.session_id },
      search: {
        step: step ?? String(alarm.sequence_number),
        console: "inject",
        ...(agent === null ? {} : { console_agent: agent }),
      } as never,
    });
  const act = async () => {
    if (alarm.agent_id === null) {
      setChoosing(true);
      return;
    }
    setBusy(true);
    const answer = await pause(alarm.session_id, alarm.agent_id, plain(alertText));
    setBusy(false);
    if (answer) await inspect(alarm.agent_id);
  };
  return (
    <li className={classes.row}>
      <span aria-hidden className={classes.mark}>
        ⟲
      </span>
      <div className={classes.what}>
        <span className={classes.sentence} title={alarm.reason ?? detector.means}>
          {alertText.before}
          {alertText.code && <code>{alertText.code}</code>}
          {alertText.after}
        </span>
        <span className={classes.who}>
          {alarm.agent_id ?? "several agents"}
          <span className={classes.goal}> · {session ? goalOf(session) : `session ${alarm.session_id}`}</span>
        </span>
      </div>
      <span className={classes.facts}>
        <span title={`detected by ${detector.name}: ${detector.means}`}>
          <Tag tone="alert">{detector.name} detector</Tag>
        </span>
        {alarm.entropy_score !== null && (
          <span title="entropy of the session">entropy {alarm.entropy_score.toFixed(2)}</span>
        )}
        <Ago at={alarm.since} />
      </span>
      <span className={classes.acts}>
        <Button
          size="compact-xs"
          color="accent"
          loading={busy}
          disabled={denied !== undefined}
          title={denied}
          onClick={() => void act()}
        >
          Pause and inspect
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => void inspect(alarm.agent_id)}>
          Inspect
        </Button>
      </span>
      {choosing && (
        <PauseChoice
          sessionId={alarm.session_id}
          note={plain(alertText)}
          onClose={() => setChoosing(false)}
          onPaused={(agent) => void inspect(agent)}
        />
      )}
    </li>
  );
}

/** The steps around an alert, fetched once: they give its duration and the step to open. */
function useSteps(alarm: AlertItem): Step[] | undefined {
  const { session_id, agent_id, sequence_number, event_type } = alarm;
  const request = useQuery({
    queryKey: ["steps of an alarm", session_id, agent_id, sequence_number, event_type],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const loopingAgent = event_type === "loop_detected" ? agent_id : null;
      const page = await get("/v1/messages", {
        query: { session_id, agent_id: loopingAgent, limit: 40 },
        signal,
      });
      return page.items.map(stepOf);
    },
  });
  return request.data;
}

function stepOf(item: MessageItem): Step {
  const message = item.message as { meta?: { timestamp?: string }; action?: { tool_call?: string } } | null;
  return {
    sequence_number: item.sequence_number,
    step_id: item.step_id,
    at: message?.meta?.timestamp ?? null,
    tool: message?.action?.tool_call ?? null,
  };
}
