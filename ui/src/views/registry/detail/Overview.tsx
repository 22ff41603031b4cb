// With nothing selected: models and versions over the whole mesh, and every circuit with its reason.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { AgentItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { BREAKERS, type Group, spreadOf } from "../registryRows";
import { STATUSES, type Status, versionsOf } from "../versions";
import { Bars } from "./Bars";
import classes from "./Detail.module.css";

const SPOKEN = { current: "on N", previous: "on N-1", retired: "retired", unknown: "unregistered" };
const RANK = { open: 0, half_open: 1, closed: 2 };

export function Overview({ groups, agents }: { groups: readonly Group[]; agents: readonly AgentItem[] }) {
  const [, setUrl] = useUrl();
  const models = useMemo(() => Object.entries(spreadOf(agents, "model")), [agents]);
  const circuits = useApi("/v1/breakers", undefined, { every: 4_000, keep: true });
  const present = agents.filter((one) => one.liveness !== "evicted");
  const silent = present.filter((one) => one.model === null).length;
  return (
    <>
      <Panel title="Models" aside={`${models.length} on ${present.length} agents`}>
        {models.length === 0 ? (
          <Empty>No agent has reported its model (identity.model, or POST /v1/agents).</Empty>
        ) : (
          <Bars
            label="Agents by model"
            bars={[
              ...models.map(([name, count]) => ({ name, count, run: () => setUrl({ q: name }) })),
              ...(silent > 0 ? [{ name: "not reported", count: silent }] : []),
            ]}
          />
        )}
      </Panel>
      <VersionSpread groups={groups} />
      <Panel title="Circuits" aside={circuits.data && `${circuits.data.items.length}`}>
        <Loaded query={circuits}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty>
                No circuits yet. One is created with the first work addressed to <code>type:…</code>, or with
                traffic weights: select a type.
              </Empty>
            ) : (
              <ul className={classes.list} aria-label="Circuits">
                {[...items]
                  .sort((a, b) => RANK[a.state] - RANK[b.state] || a.capability.localeCompare(b.capability))
                  .map((one) => (
                    <li key={one.capability}>
                      <button
                        type="button"
                        className={classes.link}
                        onClick={() => setUrl({ type: one.capability })}
                      >
                        {one.capability}
                      </button>
                      <Tag tone={BREAKERS[one.state].tone}>
                        {BREAKERS[one.state].mark} {BREAKERS[one.state].word}
                      </Tag>
                      <span className={classes.why}>
                        {one.reason ??
                          (one.failures > 0
                            ? `${one.failures} of ${one.failures + one.successes} failed recently`
                            : "no recent failures")}
                        {one.opened_at && (
                          <>
                            , <Ago at={one.opened_at} />
                          </>
                        )}
                      </span>
                    </li>
                  ))}
              </ul>
            )
          }
        </Loaded>
      </Panel>
    </>
  );
}

/** Every type with the number of its instances on N, N-1, a retired or an unregistered version. */
function VersionSpread({ groups }: { groups: readonly Group[] }) {
  const [, setUrl] = useUrl();
  const query = useApi("/v1/versions", undefined, { every: 15_000, keep: true });
  const types = groups.filter((group) => group.kind === "type");
  return (
    <Panel title="Versions by type">
      <Loaded query={query}>
        {({ items }) => (
          <ul className={classes.list} aria-label="Versions by type">
            {types.slice(0, 40).map((group) => {
              const versions = versionsOf(
                items.filter((one) => one.agent_type === group.name),
                group.agents,
              );
              return (
                <li key={group.name} className={classes.spread}>
                  <button type="button" className={classes.link} onClick={() => setUrl({ type: group.name })}>
                    {group.name}
                  </button>
                  <Stack counts={byStatus(versions)} />
                </li>
              );
            })}
            {types.length > 40 && <li className={classes.faint}>and {types.length - 40} more types</li>}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
}

function byStatus(versions: ReturnType<typeof versionsOf>): [Status, number][] {
  return (Object.keys(STATUSES) as Status[]).map((status) => [
    status,
    versions.filter((one) => one.status === status).reduce((sum, one) => sum + one.instances, 0),
  ]);
}

function Stack({ counts }: { counts: [Status, number][] }) {
  const some = counts.filter(([, count]) => count > 0);
  if (some.length === 0) return <span className={classes.faint}>no version reported</span>;
  return (
    <span className={classes.stacked}>
      <span className={classes.stack} aria-hidden>
        {some.map(([status, count]) => (
          <span key={status} data-tone={STATUSES[status].tone} style={{ flexGrow: count }} />
        ))}
      </span>
      <span className={classes.faint}>
        {some.map(([status, count]) => `${count} ${SPOKEN[status]}`).join(", ")}
      </span>
    </span>
  );
}
