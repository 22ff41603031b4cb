// OTLP exporters of audit events, and how far each backend is behind. Payloads are never exported.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { ExporterItem } from "~/protocol/openapi";
import { short } from "~/widgets/format";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { MakeNew, MasterDetail } from "../parts/MasterDetail";
import { Section } from "../parts/Section";
import { Exporter } from "./Exporter";
import { ExporterForm } from "./ExporterForm";
import { STATUSES } from "./exporters";

export function Exporters() {
  const query = useApi("/v1/exporters", undefined, { every: 3_000, keep: true });
  const denied = useWhyNot("admin");
  const columns = useMemo(
    () => [
      { id: "name", title: "Backend", cell: (one: ExporterItem) => one.name },
      {
        id: "status",
        title: "State",
        width: 110,
        cell: (one: ExporterItem) => <Tag tone={STATUSES[one.status].tone}>{STATUSES[one.status].word}</Tag>,
      },
      {
        id: "lag",
        title: "Lag",
        width: 84,
        figure: true,
        cell: (one: ExporterItem) => short(one.lag_events),
      },
      {
        id: "url",
        title: "Endpoint",
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
      lead="Audit events to an OTLP backend: Grafana, Honeycomb, a collector before Splunk or Datadog. At least once, in order."
      fills
      acts={<MakeNew word="New exporter" denied={denied} />}
    >
      <Loaded query={query} rows={8}>
        {({ items }) => (
          <MasterDetail
            label="Exporters"
            rows={items}
            keyOf={(one) => one.exporter_id}
            nameOf={(one) => one.name}
            columns={columns}
            empty={
              <Empty command="observatory exporters add grafana https://otlp.example.com --from start">
                No exporters. Add an OTLP backend and send one test record; or on the command line:
              </Empty>
            }
            makes="New exporter"
            making={<ExporterForm item={null} denied={denied} />}
            one={(one) => <Exporter item={one} denied={denied} />}
          />
        )}
      </Loaded>
    </Section>
  );
}
