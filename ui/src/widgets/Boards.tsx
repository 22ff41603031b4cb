// A view with several boards: their names at the left (a strip where it is narrow), the chosen one beside. Each
// board has an address of its own.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import classes from "./Boards.module.css";

export interface Board {
  name: string;
  to: string;
  /** Boards of one group stand together under its name. */
  group?: string;
  /** What waits there: a number, or a short word. */
  count?: ReactNode;
}

export function Boards({
  label,
  boards,
  current,
  children,
}: {
  label: string;
  boards: readonly Board[];
  /** The `to` of the board that is shown. */
  current: string;
  children: ReactNode;
}) {
  return (
    <div className={classes.boards}>
      <nav className={classes.names} aria-label={label}>
        <ul>
          {boards.map(({ name, to, group, count }, n) => (
            <li key={to}>
              {group !== undefined && group !== boards[n - 1]?.group && (
                <span className={classes.group}>{group}</span>
              )}
              <Link
                to={to}
                search={{}}
                activeOptions={{ exact: true }}
                aria-current={to === current ? "page" : undefined}
              >
                {name}
                {count !== undefined && <span className={classes.count}>{count}</span>}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className={classes.board}>{children}</div>
    </div>
  );
}
