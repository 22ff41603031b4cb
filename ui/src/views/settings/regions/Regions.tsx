// Where clusters stand on the world map: by their names, or as operators say.
import { placeClusters } from "~/acts/settings";
import { useAnswer } from "~/api/questions";
import type { RegionsAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Empty, Shown } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { Pick } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { useForm } from "../parts/useForm";
import { linesOf, placesOf, valuesOf } from "./places";

export function Regions() {
  const asked = useAnswer("/v1/fleet/regions", undefined, { every: 10_000, keep: true });
  return (
    <Section
      title="Regions"
      lead="Where clusters stand on the world map. A name that holds a region (aws-eu-central-1) is found by itself; for the others, say it here."
    >
      <Shown asked={asked} rows={6}>
        {(answer) =>
          linesOf(answer).length === 0 ? (
            <Empty command="observatory demo">No agent has named a cluster yet. To see some:</Empty>
          ) : (
            <Places answer={answer} />
          )
        }
      </Shown>
    </Section>
  );
}

function Places({ answer }: { answer: RegionsAnswer }) {
  const denied = useWhyNot("operate");
  const names = useNames();
  const form = useForm("regions", valuesOf(answer), answer.updated_at);
  const lines = linesOf(answer);
  const known = answer.known.map(({ region, name }) => ({ value: region, label: `${name} (${region})` }));
  const save = async () => {
    const places = placesOf(form.values, answer.clusters);
    if (await placeClusters(places, answer.clusters, form.was, form.refused)) form.forget();
  };
  return (
    <div className={classes.card}>
      <FormBox form={form} label="Regions" does="Save the places" denied={denied} onSave={save}>
        {answer.unplaced.length > 0 && (
          <p className={classes.note}>
            ! {answer.unplaced.length} {answer.unplaced.length === 1 ? "cluster stands" : "clusters stand"}{" "}
            nowhere: {answer.unplaced.join(", ")}.
          </p>
        )}
        <div className={classes.two}>
          {lines.map(({ cluster, found }) => (
            <Pick
              key={cluster}
              form={form}
              name={cluster}
              label={cluster}
              options={[
                { value: "", label: found ?? "as its name says" },
                ...(form.text(cluster) === "@" ? [{ value: "@", label: "by coordinates" }] : []),
                { value: "-", label: "off the map" },
                ...known,
              ]}
            />
          ))}
        </div>
      </FormBox>
      {answer.updated_at && (
        <div className={classes.part}>
          <p className={classes.faint}>
            Said <Ago at={answer.updated_at} /> by {names(answer.updated_by)}.
          </p>
        </div>
      )}
    </div>
  );
}
