// Where the record's events go by OTLP, and how far each backend is behind. Payloads never leave the house.
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { ExporterItem } from "~/protocol/openapi";
import { Tag } from "~/widgets/Mark";
import { Empty, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { short } from "~/widgets/words";
import { Desk, MakeNew } from "../parts/Desk";
import { Section } from "../parts/Section";
import { Exporter } from "./Exporter";
import { ExporterForm } from "./ExporterForm";
import { STATUSES } from "./exporters";

export function Exporters() {
  const asked = useAnswer("/v1/exporters", undefined, { every: 3_000, keep: true });
  const denied = useWhyNot("admin");
  const columns = useMemo(
    () => [
      { id: "name", title: "Backend", cell: (one: ExporterItem) => one.name },
      {
        id: "status",
        title: "Now",
        width: 110,
        cell: (one: ExporterItem) => <Tag tone={STATUSES[one.status].tone}>{STATUSES[one.status].word}</Tag>,
      },
      {
        id: "lag",
        title: "Behind",
        width: 84,
        figure: true,
        cell: (one: ExporterItem) => short(one.lag_events),
      },
      {
        id: "url",
        title: "Where",
        from: 620,
        cell: (one: ExporterItem) => <span title={one.url}>{`${one.protocol} ${one.url}`}</span>,
      },
      {
        id: "sent",
        title: "Sent",
        from: 480,
        width: 76,
        figure: true,
        cell: (one: ExporterItem) => short(one.sent),
      },
      {
        id: "refused",
        title: "Refused",
        from: 760,
        width: 76,
        figure: true,
        cell: (one: ExporterItem) => short(one.refused),
      },
    ],
    [],
  );
  return (
    <Section
      title="Exporters"
      lead="The record's events to an OTLP backend: Grafana, Honeycomb, a collector before Splunk or Datadog. At least once, in order."
      fills
      acts={<MakeNew word="New exporter" denied={denied} />}
    >
      <Shown asked={asked} rows={8}>
        {({ items }) => (
          <Desk
            label="Exporters"
            rows={items}
            keyOf={(one) => one.exporter_id}
            nameOf={(one) => one.name}
            columns={columns}
            empty={
              <Empty command="observatory exporters add grafana https://otlp.example.com --from start">
                Events go nowhere else yet. Name an OTLP backend and send one test record; or on the terminal:
              </Empty>
            }
            makes="New exporter"
            making={<ExporterForm item={null} denied={denied} />}
            one={(one) => <Exporter item={one} denied={denied} />}
          />
        )}
      </Shown>
    </Section>
  );
}
