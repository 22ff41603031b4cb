// The session console (HITL): pause an agent and see the pause take effect, rewrite held messages, inject
// prompts, and the record of interventions. Permissions are checked by the gateway, which knows the user.
import { Select, Tabs } from "@mantine/core";
import { useEffect, useRef } from "react";
import { useUrl } from "~/useUrl";
import { Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "./Console.module.css";
import { Inject } from "./Inject";
import { InterventionTable } from "./InterventionTable";
import { agentOf, pauseInForce } from "./interventionState";
import { Messages } from "./Messages";
import { PauseControl } from "./PauseControl";
import { useConsole } from "./useConsole";

export interface ConsoleProps {
  sessionId: string;
  /** The selection in the graph; the operator may choose another agent. */
  agentId?: string;
  stepId?: string;
  messageId?: string;
}

const TABS = ["message", "inject", "record"];

export function Console({ sessionId, agentId, stepId, messageId }: ConsoleProps) {
  const { session, record, holds, items } = useConsole(sessionId);
  const [url, setUrl] = useUrl();
  const denied = useWhyNot("operate");
  // A new selection in the graph overrides an agent chosen by hand.
  const selected = useRef(agentId);
  useEffect(() => {
    if (selected.current === agentId) return;
    if (selected.current !== undefined) setUrl({ console_agent: null, held: null }, true);
    selected.current = agentId;
  }, [agentId, setUrl]);
  return (
    <section className={classes.console} aria-label="Console">
      <Loaded query={session}>
        {({ agents }) => {
          const agent = agentOf(agents, url.console_agent, agentId);
          const all = holds.data ?? [];
          const atHand = all.find(
            (one) => one.message_id === messageId || one.step_id === stepId,
          )?.message_id;
          const mine = all.filter((one) => one.agent_id === agent).length;
          const tab = TABS.includes(url.console ?? "")
            ? url.console
            : atHand || mine > 0
              ? "message"
              : "inject";
          const names = agents.map((member) => member.agent_id);
          if (agent !== null && !names.includes(agent)) names.push(agent);
          const member = agents.find((one) => one.agent_id === agent);
          return (
            <div className={classes.inside}>
              <div className={classes.left}>
                <Select
                  size="xs"
                  className={classes.agent}
                  label="Agent"
                  searchable
                  allowDeselect={false}
                  data={names.sort()}
                  value={agent}
                  placeholder="no agents yet"
                  nothingFoundMessage="no matches"
                  onChange={(name) => setUrl({ console_agent: name, held: null }, true)}
                />
                {agent !== null && (
                  <PauseControl
                    sessionId={sessionId}
                    agent={agent}
                    paused={member?.paused ?? pauseInForce(items, agent) !== null}
                    pause={pauseInForce(items, agent)}
                    held={mine}
                    denied={denied}
                  />
                )}
              </div>
              <Tabs
                className={classes.right}
                classNames={{ tab: classes.tab, panel: classes.body }}
                value={tab ?? "inject"}
                onChange={(next) => setUrl({ console: next }, true)}
                keepMounted={false}
              >
                <Tabs.List>
                  <Tabs.Tab value="message">
                    Edit message{all.length > 0 ? ` (${all.length} held)` : ""}
                  </Tabs.Tab>
                  <Tabs.Tab value="inject">Inject prompt</Tabs.Tab>
                  <Tabs.Tab value="record">Record{items.length > 0 ? ` (${items.length})` : ""}</Tabs.Tab>
                </Tabs.List>
                <Tabs.Panel value="message">
                  <Messages
                    sessionId={sessionId}
                    asked={holds}
                    agent={agent}
                    picked={url.held ?? atHand}
                    onPick={(id) => setUrl({ held: id, console: "message" }, true)}
                    denied={denied}
                  />
                </Tabs.Panel>
                <Tabs.Panel value="inject">
                  <Inject
                    sessionId={sessionId}
                    agent={agent}
                    isMember={member !== undefined}
                    items={items}
                    denied={denied}
                    onBegin={() => setUrl({ console: "inject" }, true)}
                  />
                </Tabs.Panel>
                <Tabs.Panel value="record">
                  <InterventionTable request={record} items={items} holds={all} denied={denied} />
                </Tabs.Panel>
              </Tabs>
            </div>
          );
        }}
      </Loaded>
    </section>
  );
}
