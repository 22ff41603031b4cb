// Whose work an agent gets: what an operator gave it, and what it only claims.
import { Button } from "@mantine/core";
import { changeGrants } from "~/acts/registry";
import type { AgentItem } from "~/protocol/openapi";
import { Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
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
            <p className={classes.line}>Requested: it claims these and gets no work for them</p>
            <ul>{agent.requested.map((word) => line(word, "grant"))}</ul>
          </>
        )}
      </div>
    </Panel>
  );
}
