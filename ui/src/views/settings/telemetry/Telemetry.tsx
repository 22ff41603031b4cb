// OTLP ingest statistics, and unmapped attributes: nothing is dropped silently.
import { useApi } from "~/api/queries";
import type { OtlpAnswer } from "~/protocol/openapi";
import { short } from "~/widgets/format";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { isSilent, linesOf } from "./telemetry";

export function Telemetry() {
  const query = useApi("/v1/otlp", undefined, { every: 3_000, keep: true });
  return (
    <Section
      title="OTLP ingest"
      lead="Instrumented agents appear without new code: point their OpenTelemetry exporter at this gateway. Counts are since it started."
    >
      <Loaded query={query} rows={6}>
        {(came) =>
          isSilent(came) ? (
            <Empty command={`export OTEL_EXPORTER_OTLP_ENDPOINT=${window.location.origin}`}>
              No OTLP data yet. Point an exporter here, with an agent's key in its headers:
            </Empty>
          ) : (
            <Came came={came} />
          )
        }
      </Loaded>
    </Section>
  );
}

function Came({ came }: { came: OtlpAnswer }) {
  return (
    <div className={classes.card}>
      <div className={classes.part}>
        <h3>Received</h3>
        <dl className={classes.facts}>
          {linesOf(came).map(({ name, count, means }) => (
            <Fact key={name} name={name} count={count} means={means} />
          ))}
          <dt>gRPC</dt>
          <dd>{came.grpc ?? <span className={classes.faint}>off (OBSERVATORY_OTLP_GRPC)</span>}</dd>
        </dl>
      </div>
      <section className={classes.part} aria-label="Unmapped attributes">
        <h3>Unmapped attributes</h3>
        {came.unmapped.length === 0 ? (
          <p>Every received attribute is mapped to a step.</p>
        ) : (
          <>
            <p>Counted but not stored. Most frequent first.</p>
            <dl className={classes.facts}>
              {came.unmapped.map(({ name, count }) => (
                <Fact key={name} name={name} count={count} means="" />
              ))}
            </dl>
          </>
        )}
      </section>
    </div>
  );
}

function Fact({ name, count, means }: { name: string; count: number; means: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {short(count)} {means && <span className={classes.faint}>{means}</span>}
      </dd>
    </>
  );
}
