// Grants of an agent: capabilities an operator granted, and those it only claims.
import { Button } from "@mantine/core";
import { changeGrants } from "~/commands/registry";
import type { AgentItem } from "~/protocol/openapi";
import { Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import classes from "./Agent.module.css";

export function Grants({ agent }: { agent: AgentItem }) {
  const denied = useWhyNot("operate");
  const line = (word: string, verb: "grant" | "revoke") => (
    <li key={word} className={classes.line}>
      <span>{word}</span>
      <Button
        size="compact-xs"
        variant="default"
        disabled={denied !== undefined}
        title={denied}
        aria-label={`${verb === "grant" ? "Grant" : "Revoke"} ${word}`}
        onClick={() => void changeGrants(agent.agent_id, verb, word)}
      >
        {verb === "grant" ? "Grant" : "Revoke"}
      </Button>
    </li>
  );
  return (
    <Panel title="Grants">
      <div className={classes.part}>
        <p className={classes.line}>Granted by an operator{agent.granted.length === 0 && ": nothing"}</p>
        <ul>{agent.granted.map((word) => line(word, "revoke"))}</ul>
        {agent.requested.length > 0 && (
          <>
            <p className={classes.line}>Requested: claimed by the agent, not routed to it</p>
            <ul>{agent.requested.map((word) => line(word, "grant"))}</ul>
          </>
        )}
      </div>
    </Panel>
  );
}
