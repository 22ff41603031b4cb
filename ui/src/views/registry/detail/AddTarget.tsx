// Adds another cluster or agent as a target; or resets to even weights.
import { Button, Select } from "@mantine/core";
import type { AgentItem } from "~/protocol/openapi";
import classes from "./Detail.module.css";

interface Props {
  agents: readonly AgentItem[];
  named: readonly string[];
  add: (target: string) => void;
  even: () => void;
}

export function AddTarget({ agents, named, add, even }: Props) {
  const there = agents.filter((agent) => agent.liveness !== "evicted");
  const clusters = [...new Set(there.flatMap((agent) => agent.cluster_id ?? []))].map(
    (id) => `cluster:${id}`,
  );
  const free = (targets: string[]) => targets.filter((one) => !named.includes(one)).sort();
  return (
    <div className={classes.add}>
      <Select
        size="xs"
        aria-label="Add a target"
        placeholder="another cluster or agent…"
        searchable
        value={null}
        limit={50}
        nothingFoundMessage="no others"
        data={[
          {
            group: "Clusters",
            items: free(clusters).map((value) => ({ value, label: value.slice("cluster:".length) })),
          },
          { group: "Single agents", items: free(there.map((agent) => agent.agent_id)) },
        ]}
        onChange={(target) => target && add(target)}
      />
      <Button size="xs" variant="default" onClick={even} disabled={clusters.length === 0}>
        Reset to even
      </Button>
    </div>
  );
}
