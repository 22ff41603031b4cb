// A view that is not built yet says so: what it will hold, and how to do the same today. No figures, no
// pretence; it goes when the view comes.
import { Link } from "@tanstack/react-router";
import classes from "./Coming.module.css";

export interface Today {
  want: string;
  command: string;
  route: string;
}

export function Coming({
  name,
  holds,
  today,
  also,
}: {
  name: string;
  holds: string;
  today: Today[];
  also?: { text: string; to: string };
}) {
  return (
    <div className={classes.page}>
      <div className={classes.inner}>
        <h1>{name}</h1>
        <p>
          This view is not built yet. It will hold {holds} What is behind it works already, from the terminal
          and over the API:
        </p>
        <table>
          <thead>
            <tr>
              <th scope="col">You want to</th>
              <th scope="col">On the terminal</th>
              <th scope="col">Over HTTP</th>
            </tr>
          </thead>
          <tbody>
            {today.map((one) => (
              <tr key={one.want}>
                <td>{one.want}</td>
                <td>
                  <code>{one.command}</code>
                </td>
                <td>
                  <code>{one.route}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <p className={classes.foot}>
          {also && (
            <>
              <Link to={also.to}>{also.text}</Link> ·{" "}
            </>
          )}
          <a href="/docs">All routes of the API</a>
        </p>
      </div>
    </div>
  );
}
