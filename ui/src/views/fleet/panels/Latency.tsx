// Latency by region: p50, p95 and p99 on one logarithmic scale, and the distribution of the region chosen.
import { type CSSProperties, useState } from "react";
import { useApi } from "~/api/queries";
import { ms } from "~/widgets/format";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "./Latency.module.css";
import { bars, shareOf, topOf } from "./latencyScale";

export function useLatency() {
  return useApi("/v1/fleet/latency", { minutes: 60 }, { every: 15_000, keep: true });
}

const share = (value: number | null, top: number) => `${(shareOf(value ?? 0, top) * 100).toFixed(1)}%`;

export function Latency() {
  const query = useLatency();
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Loaded query={query}>
      {(answer) => {
        if (answer.regions.length === 0)
          return <Empty>No acknowledged deliveries in the last hour, so there is no latency yet.</Empty>;
        const top = topOf(answer.regions.map((region) => region.p99_ms ?? 0));
        const one = answer.regions.find((region) => region.region === chosen);
        const shown = bars(answer.edges_ms, (one ?? answer.all).histogram, ms);
        const regionName = one ? one.name : "all regions";
        return (
          <div className={classes.box} title={answer.measured}>
            <table className={classes.table}>
              <caption className="unseen">Latency by region in the last hour: {answer.measured}</caption>
              <thead>
                <tr>
                  <th scope="col">region</th>
                  <th scope="col" className={classes.scale}>
                    <span>1 ms</span>
                    <span>{ms(top)}</span>
                  </th>
                  <th scope="col">p50</th>
                  <th scope="col">p95</th>
                  <th scope="col">p99</th>
                </tr>
              </thead>
              <tbody>
                {answer.regions.map((region) => (
                  <tr key={region.region} data-chosen={region.region === chosen || undefined}>
                    <th scope="row">
                      <button
                        type="button"
                        aria-pressed={region.region === chosen}
                        title={`${region.region}: ${region.count} measured`}
                        onClick={() => setChosen(region.region === chosen ? null : region.region)}
                      >
                        {region.name}
                      </button>
                    </th>
                    <td className={classes.track} aria-hidden>
                      <span
                        className={classes.reach}
                        style={
                          {
                            left: share(region.p50_ms, top),
                            width: `calc(${share(region.p99_ms, top)} - ${share(region.p50_ms, top)})`,
                          } as CSSProperties
                        }
                      />
                      <i data-p="50" style={{ left: share(region.p50_ms, top) }} />
                      <i data-p="95" style={{ left: share(region.p95_ms, top) }} />
                      <i data-p="99" style={{ left: share(region.p99_ms, top) }} />
                    </td>
                    <td>{ms(region.p50_ms)}</td>
                    <td>{ms(region.p95_ms)}</td>
                    <td>{ms(region.p99_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            <figure className={classes.spread}>
              <div
                className={classes.bars}
                role="img"
                aria-label={`Distribution, ${regionName}: ${shown.map((bar) => `${bar.name} ${bar.count}`).join(", ") || "nothing measured"}`}
              >
                {shown.map((bar) => (
                  <span
                    key={bar.name}
                    title={`${bar.name}: ${bar.count}`}
                    style={{ height: `${Math.max(2, bar.share * 100)}%` }}
                  />
                ))}
              </div>
              <figcaption>
                {regionName}: {shown[0]?.name ?? "nothing measured"}
                {shown.length > 1 && ` … ${shown.at(-1)?.name}`}
              </figcaption>
            </figure>
          </div>
        );
      }}
    </Loaded>
  );
}
