// Preview of unsaved weights: each target's present and projected share, and the effect on the last hour's
// traffic.

import { plural } from "~/plural";
import { type Line, percent, plain } from "../weights";
import classes from "./Detail.module.css";

export function Preview({
  lines,
  total,
  query: asked,
}: {
  lines: readonly Line[];
  total: number;
  query: boolean;
}) {
  return (
    <table className={classes.preview}>
      <caption>
        {total > 0
          ? `Based on the ${plural(total, "message")} sent to its instances in the last hour, as if all had been addressed to the type. Messages addressed to an agent by name are not affected.`
          : asked
            ? "No traffic in the last hour, so only shares are shown."
            : "Loading the last hour's traffic…"}
      </caption>
      <thead>
        <tr>
          <th scope="col">Target</th>
          <th scope="col">Live</th>
          <th scope="col">Share now → new</th>
          <th scope="col">Last hour → projected</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.target}>
            <th scope="row" title={line.target || undefined}>
              {line.target === "" ? "no target" : plain(line.target)}
            </th>
            <td>
              {line.healthy} of {line.instances}
            </td>
            <td
              data-way={line.next > line.now + 1e-9 ? "up" : line.next < line.now - 1e-9 ? "down" : undefined}
            >
              {percent(line.now)} → <b>{percent(line.next)}</b>
            </td>
            <td>
              {total > 0 ? `${line.got.toLocaleString("en")} → ${line.would.toLocaleString("en")}` : "–"}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
