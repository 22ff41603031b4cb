// Regions of clusters on the geographic map: from their names, or set by operators.

import { useApi } from "~/api/queries";
import { placeClusters } from "~/commands/settings";
import { plural } from "~/plural";
import type { RegionsAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Empty, Loaded } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import { SelectField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { useForm } from "../parts/useForm";
import { linesOf, placesOf, valuesOf } from "./regionForm";

export function Regions() {
  const query = useApi("/v1/fleet/regions", undefined, { every: 10_000, keep: true });
  return (
    <Section
      title="Regions"
      lead="Position of clusters on the geographic map. A name that contains a region (aws-eu-central-1) is recognised; set the others here."
    >
      <Loaded query={query} rows={6}>
        {(answer) =>
          linesOf(answer).length === 0 ? (
            <Empty command="observatory demo">No clusters yet. To see some:</Empty>
          ) : (
            <Places answer={answer} />
          )
        }
      </Loaded>
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
      <FormBox form={form} label="Regions" does="Save regions" denied={denied} onSave={save}>
        {answer.unplaced.length > 0 && (
          <p className={classes.note}>
            ! {plural(answer.unplaced.length, "cluster is", "clusters are")} nowhere:{" "}
            {answer.unplaced.join(", ")}.
          </p>
        )}
        <div className={classes.two}>
          {lines.map(({ cluster, found }) => (
            <SelectField
              key={cluster}
              form={form}
              name={cluster}
              label={cluster}
              options={[
                { value: "", label: found ?? "from its name" },
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
