// The left rail: six views with number, icon and name; at phone width a bar at the bottom.
import { Link, useLocation } from "@tanstack/react-router";
import { Icon } from "./Icon";
import classes from "./Rail.module.css";
import { VIEWS } from "./views";

export function Rail() {
  const path = useLocation({ select: (location) => location.pathname });
  return (
    <nav className={classes.rail} aria-label="Views">
      <Link to="/fleet" className={classes.sign} aria-label="Observatory, to Fleet Command" tabIndex={-1}>
        <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
          <circle cx="11" cy="11" r="9" fill="none" stroke="currentColor" strokeWidth="1.4" />
          <circle cx="11" cy="11" r="3.2" fill="currentColor" />
          <path d="M2 11h5.8M14.2 11H20" stroke="currentColor" strokeWidth="1.4" />
        </svg>
      </Link>
      <ul>
        {VIEWS.map(({ number, name, whole, to, icon }) => {
          const here =
            path === to || path.startsWith(`${to}/`) || (to === "/sessions" && path === "/compare");
          return (
            <li key={to}>
              <Link
                to={to}
                className={classes.view}
                aria-current={here ? "page" : undefined}
                aria-keyshortcuts={String(number)}
                title={`${whole} (${number})`}
                data-god={to === "/god-mode" || undefined}
              >
                <span className={classes.number} aria-hidden>
                  {number}
                </span>
                <Icon name={icon} size={20} />
                <span className={classes.name}>{name}</span>
              </Link>
            </li>
          );
        })}
      </ul>
      <Link
        to="/settings"
        className={classes.foot}
        aria-current={path.startsWith("/settings") ? "page" : undefined}
        aria-keyshortcuts=","
        aria-label="Settings"
        title="Settings (,)"
      >
        <Icon name="settings" size={20} />
      </Link>
    </nav>
  );
}
