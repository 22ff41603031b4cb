// Weights before they are saved: what each target gets now and would get, as shares and over the last hour.
import { type Line, percent, plain } from "../weights";
import classes from "./Detail.module.css";

export function Preview({ lines, total, asked }: { lines: readonly Line[]; total: number; asked: boolean }) {
  return (
    <table className={classes.preview}>
      <caption>
        {total > 0
          ? `Over the ${total.toLocaleString("en")} messages its instances were sent in the last hour, had all been addressed to the type. What names an agent goes to it as before.`
          : asked
            ? "Its instances were sent nothing in the last hour, so only shares can be told."
            : "Asking for the last hour's traffic…"}
      </caption>
      <thead>
        <tr>
          <th scope="col">Target</th>
          <th scope="col">Live</th>
          <th scope="col">Share now → then</th>
          <th scope="col">Last hour → would</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.target}>
            <th scope="row" title={line.target || undefined}>
              {line.target === "" ? "named by none" : plain(line.target)}
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
