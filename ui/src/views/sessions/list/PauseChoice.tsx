// Selects which agent of a session to pause: one press each, the busiest first.
import { Button, Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { pause, unpause } from "~/commands/session";
import { short } from "~/widgets/format";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "./PauseChoice.module.css";

interface Asked {
  sessionId: string;
  note?: string;
  onClose: () => void;
  onPaused?: (agent: string) => void;
}

export function PauseChoice({ sessionId, note = "", onClose, onPaused }: Asked) {
  const query = useApi("/v1/sessions/{session_id}", undefined, { params: { session_id: sessionId } });
  const denied = useWhyNot("operate");
  const [why, setWhy] = useState(note);
  const choose = async (agent: string, isPaused: boolean) => {
    const answer = await (isPaused ? unpause(sessionId, agent) : pause(sessionId, agent, why || undefined));
    if (!answer) return;
    onClose();
    if (!isPaused) onPaused?.(agent);
  };
  return (
    <Modal opened onClose={onClose} title="Pause which agent?" size="md" centered>
      <Loaded query={query}>
        {({ agents }) => (
          <div className={classes.choice}>
            {agents.length === 0 && <Empty>No agents in this session yet.</Empty>}
            <ul>
              {[...agents]
                .sort((a, b) => b.messages - a.messages)
                .map((agent, index) => (
                  <li key={agent.agent_id}>
                    <Button
                      fullWidth
                      justify="space-between"
                      variant="default"
                      data-autofocus={index === 0 || undefined}
                      disabled={denied !== undefined}
                      onClick={() => void choose(agent.agent_id, agent.paused)}
                      rightSection={
                        <span className={classes.aside}>
                          {agent.paused
                            ? "paused · resume"
                            : agent.messages === 1
                              ? "1 step"
                              : `${short(agent.messages)} steps`}
                        </span>
                      }
                    >
                      {agent.paused ? `Resume ${agent.agent_id}` : `Pause ${agent.agent_id}`}
                    </Button>
                  </li>
                ))}
            </ul>
            <TextInput
              size="xs"
              label="Reason (recorded)"
              value={why}
              maxLength={4000}
              onChange={(event) => setWhy(event.currentTarget.value)}
            />
            {denied && <p role="note">{denied}</p>}
            <p>Its messages in this session are then held, in order, and not delivered.</p>
          </div>
        )}
      </Loaded>
    </Modal>
  );
}
