// Details of the selected type: weights, circuit, versions, models.
import { CloseButton } from "@mantine/core";
import type { AgentItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Panel } from "~/widgets/Panel";
import { type Group, LIVENESS, LIVES, TRUSTS } from "../registryRows";
import { Bars } from "./Bars";
import { Circuit } from "./Circuit";
import classes from "./Detail.module.css";
import { Routing } from "./Routing";
import { Versions } from "./Versions";

export function Detail({ group, onClose }: { group: Group; onClose: () => void }) {
  const [, setUrl] = useUrl();
  const models = Object.entries(group.models).map(([name, count]) => ({
    name,
    count,
    run: () => setUrl({ q: name }),
  }));
  const silent = group.total - models.reduce((sum, one) => sum + one.count, 0);
  return (
    <>
      <header className={classes.head}>
        <h2>{group.name}</h2>
        <span className={classes.faint}>
          {group.kind === "type"
            ? "agent type"
            : group.kind === "capability"
              ? "capability"
              : "agents without a type"}
        </span>
        <CloseButton size="sm" aria-label="Clear selection" onClick={onClose} />
        <p>
          {LIVENESS.map(
            (one) => [one, group.agents.filter((agent) => agent.liveness === one).length] as const,
          )
            .filter(([, count]) => count > 0)
            .map(([one, count]) => `${count} ${LIVES[one].word}`)
            .join(", ") || "No instances."}
          {Object.keys(group.trusts).length > 0 &&
            `; trust: ${Object.entries(group.trusts)
              .map(([name, count]) => `${TRUSTS[name as AgentItem["trust_level"]] ?? name} ${count}`)
              .join(", ")}`}
        </p>
      </header>
      {group.kind !== "none" && (
        <>
          <Routing group={group} />
          <Circuit capability={group.name} />
        </>
      )}
      {group.kind === "type" && <Versions agent_type={group.name} agents={group.agents} />}
      <Panel title="Models">
        {models.length === 0 ? (
          <p className={classes.calm}>No instance reported its model.</p>
        ) : (
          <Bars
            label={`Instances of ${group.name} by model`}
            bars={silent > 0 ? [...models, { name: "not reported", count: silent }] : models}
          />
        )}
      </Panel>
    </>
  );
}
