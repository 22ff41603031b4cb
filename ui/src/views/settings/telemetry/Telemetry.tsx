// What others' telemetry brought by OTLP, and what of it no step holds: nothing is dropped in silence.
import { useAnswer } from "~/api/questions";
import type { OtlpAnswer } from "~/protocol/openapi";
import { Empty, Shown } from "~/widgets/Panel";
import { short } from "~/widgets/words";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { isSilent, linesOf } from "./telemetry";

export function Telemetry() {
  const asked = useAnswer("/v1/otlp", undefined, { every: 3_000, keep: true });
  return (
    <Section
      title="Telemetry in"
      lead="Agents that are instrumented already show up here without new code: their OpenTelemetry exporter is pointed at this gateway. What came since it started."
    >
      <Shown asked={asked} rows={6}>
        {(came) =>
          isSilent(came) ? (
            <Empty command={`export OTEL_EXPORTER_OTLP_ENDPOINT=${window.location.origin}`}>
              Nothing has come by OTLP yet. Point an exporter here, with an agent's key in its headers:
            </Empty>
          ) : (
            <Came came={came} />
          )
        }
      </Shown>
    </Section>
  );
}

function Came({ came }: { came: OtlpAnswer }) {
  return (
    <div className={classes.card}>
      <div className={classes.part}>
        <h3>What came</h3>
        <dl className={classes.facts}>
          {linesOf(came).map(({ name, count, means }) => (
            <Fact key={name} name={name} count={count} means={means} />
          ))}
          <dt>gRPC</dt>
          <dd>{came.grpc ?? <span className={classes.faint}>off (OBSERVATORY_OTLP_GRPC)</span>}</dd>
        </dl>
      </div>
      <section className={classes.part} aria-label="Attributes no step holds">
        <h3>Attributes no step holds</h3>
        {came.unmapped.length === 0 ? (
          <p>Every attribute that came has its place in a step.</p>
        ) : (
          <>
            <p>They were counted and not kept. The commonest first.</p>
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
