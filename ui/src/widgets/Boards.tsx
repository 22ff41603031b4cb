// A view with several boards: their names at the left (a strip on a narrow screen), the selected one next to
// them. Each board has an address of its own.
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import classes from "./Boards.module.css";

// The view decides which one is current; the router would also mark a link with the same prefix.
const EXACT = { exact: true, includeSearch: true };

export interface Board {
  name: string;
  to: string;
  /** For boards of one address: its search parameters, and the name by which it is current. */
  search?: Record<string, string>;
  id?: string;
  /** Boards of one group are listed together under its name. */
  group?: string;
  /** A badge: a number, or a short word. */
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
  /** The `id`, else the `to`, of the current board. */
  current: string;
  children: ReactNode;
}) {
  const names = useRef<HTMLElement>(null);
  // On a narrow screen the names are a strip: the current one is scrolled into view.
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever another one is current
  useEffect(() => {
    names.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <div className={classes.boards}>
      <nav className={classes.names} aria-label={label} ref={names}>
        <ul>
          {boards.map(({ name, to, search = {}, id = to, group, count }, n) => (
            <li key={id}>
              {group !== undefined && group !== boards[n - 1]?.group && (
                <span className={classes.group}>{group}</span>
              )}
              <Link
                to={to}
                search={search as never}
                activeOptions={EXACT}
                aria-current={id === current ? "page" : undefined}
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
