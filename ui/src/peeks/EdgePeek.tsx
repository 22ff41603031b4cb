// Edge panel: traffic from one agent to another: volume, rate, health and reason, and the last messages. An
// edge that stands for several (zoomed-out clusters) lists them.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { EdgeRecord, NodeRecord } from "~/graph";
import { useUrl } from "~/useUrl";
import { ms, rate, short } from "~/widgets/format";
import { Mark } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "./agent.module.css";
import { EdgeLine, EdgeStatus } from "./agentEdges";
import { edgeIn, nodeIn, useFleet } from "./agentLive";
import { bundled, endsOf } from "./edgeBundle";
import { between, type EdgeMessage } from "./edgeMessages";

export function EdgePeek({ id }: { id: string }) {
  return endsOf(id) ? <Bundle id={id} /> : <One id={id} />;
}

function One({ id }: { id: string }) {
  const edge = useFleet((picture) => edgeIn(picture, id), id);
  const at = id.indexOf(" → ");
  const [from, to] = [id.slice(0, at), id.slice(at + 3)];
  return (
    <div className={classes.peek}>
      <header className={classes.head}>
        <h3>
          {from} <span aria-hidden>→</span>
          <span className="unseen"> to </span> {to}
        </h3>
        {edge ? (
          <EdgeDetails edge={edge} />
        ) : (
          <p>
            {edge === null ? "No traffic on this edge in the last hour, so the map does not draw it." : "…"}
          </p>
        )}
      </header>
      <section className={classes.part} aria-label="Endpoints">
        <h4>Endpoints</h4>
        <ul className={classes.rows}>
          <End id={from} says="sends" />
          <End id={to} says="receives" />
        </ul>
      </section>
      <Recent from={from} to={to} />
    </div>
  );
}

function EdgeDetails({ edge }: { edge: EdgeRecord }) {
  const kinds = (edge.kinds ?? []).map((kind) =>
    kind === "causal" ? "its steps follow" : "addressed messages",
  );
  return (
    <>
      <p className={classes.state}>
        <EdgeStatus status={edge.status} /> <span>{edge.reason ?? "delivered and acknowledged in time"}</span>
      </p>
      <dl className={classes.figures}>
        <div>
          <dt>rate</dt>
          <dd>{rate(edge.rate_per_s)}</dd>
        </div>
        <div>
          <dt>latency p50</dt>
          <dd>{ms(edge.latency_p50_ms)}</dd>
        </div>
        <div>
          <dt>latency p95</dt>
          <dd>{ms(edge.latency_p95_ms)}</dd>
        </div>
        <div>
          <dt>follows after</dt>
          <dd title="mean from a step to the one that follows">{ms(edge.latency_mean_ms)}</dd>
        </div>
        <div>
          <dt>unacknowledged</dt>
          <dd>{short(edge.unacknowledged ?? 0)}</dd>
        </div>
        <div>
          <dt>failures</dt>
          <dd>{short(edge.failures ?? 0)}</dd>
        </div>
        <div>
          <dt>messages</dt>
          <dd title="in the last hour, rounded">{short(edge.messages)}</dd>
        </div>
      </dl>
      {kinds.length > 0 && <p className={classes.more}>{kinds.join(" and ")}</p>}
    </>
  );
}

function End({ id, says }: { id: string; says: string }) {
  const [, setUrl] = useUrl();
  const node = useFleet((picture) => nodeIn(picture, id), id);
  return (
    <li>
      <span className={classes.word}>{says}</span>
      {node ? (
        <button type="button" className={classes.link} onClick={() => setUrl({ peek: `agent:${id}` })}>
          {node.name ?? id}
        </button>
      ) : (
        <span>{id}</span>
      )}
      {node && <Mark state={node.state} />}
    </li>
  );
}

/** Messages are listed by sender; those along the edge are read from both ends' last ones. */
function Recent({ from, to }: { from: string; to: string }) {
  const sent = useApi("/v1/messages", { agent_id: from, limit: 200 }, { every: 5_000, keep: true });
  const followed = useApi("/v1/messages", { agent_id: to, limit: 200 }, { every: 5_000, keep: true });
  const receiver = useApi("/v1/agents/{agent_id}", {}, { params: { agent_id: to } });
  const names = [to, ...(receiver.data ? [receiver.data.entity_id] : [])];
  return (
    <section className={classes.part} aria-label="Recent messages">
      <h4>Recent messages</h4>
      <Loaded query={sent}>
        {({ items }) => {
          const passed = between(items, followed.data?.items ?? [], names);
          if (passed.length === 0)
            return (
              <Empty>
                None of the last {items.length} messages of {from} used this edge.
              </Empty>
            );
          return (
            <ul className={classes.sessions}>
              {passed.slice(0, 12).map((one) => (
                <Message key={one.message_id} one={one} />
              ))}
            </ul>
          );
        }}
      </Loaded>
    </section>
  );
}

function Message({ one }: { one: EdgeMessage }) {
  const [, setUrl] = useUrl();
  return (
    <li>
      <button
        type="button"
        className={classes.link}
        onClick={() => setUrl({ peek: `message:${one.message_id}` })}
      >
        {one.text}
      </button>
      <span className={classes.line}>
        {one.how === "followed" ? "followed a step" : "addressed"} · {one.type} · {one.state} ·{" "}
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: one.session_id }}
          search={{ step: one.step_id } as never}
        >
          step
        </Link>
      </span>
    </li>
  );
}

function Bundle({ id }: { id: string }) {
  const edges = useFleet(
    (picture) =>
      bundled(
        id,
        picture.of("edge").values() as unknown as Iterable<EdgeRecord>,
        (agent) => picture.of("node").get(agent) as unknown as NodeRecord | undefined,
      ),
    id,
  );
  const sum = edges?.reduce((total, edge) => total + edge.rate_per_s, 0) ?? 0;
  return (
    <div className={classes.peek}>
      <header className={classes.head}>
        <h3>{id.replaceAll(/\b(cluster|type|group):/g, "")}</h3>
        <p>
          {edges?.length ?? 0} edges drawn as one, {rate(sum)} total.
        </p>
      </header>
      <ul className={classes.rows}>
        {edges?.slice(0, 60).map((edge) => (
          <EdgeLine key={edge.id} edge={edge} name={edge.id} />
        ))}
      </ul>
      {(edges?.length ?? 0) > 60 && <p className={classes.more}>and {(edges?.length ?? 0) - 60} more</p>}
    </div>
  );
}
