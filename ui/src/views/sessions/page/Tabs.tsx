// Panes as tabs: the open one is in the URL (`tab`), arrow keys move between them.
import type { ReactNode } from "react";
import { useUrl } from "~/useUrl";
import classes from "./Page.module.css";

export interface Tab {
  name: string;
  title: string;
  show: () => ReactNode;
}

export function Tabs({ tabs, label }: { tabs: Tab[]; label: string }) {
  const [url, setUrl] = useUrl();
  const open = tabs.find((tab) => tab.name === url.tab) ?? tabs[0];
  if (!open) return null;
  const move = (by: number) => {
    const next = tabs[(tabs.indexOf(open) + by + tabs.length) % tabs.length];
    if (!next) return;
    setUrl({ tab: next.name }, true);
    document.getElementById(`tab-${next.name}`)?.focus();
  };
  return (
    <div className={classes.column}>
      <div className={classes.tabs} role="tablist" aria-label={label}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            type="button"
            role="tab"
            id={`tab-${tab.name}`}
            aria-selected={tab === open}
            aria-controls={`pane-${tab.name}`}
            tabIndex={tab === open ? 0 : -1}
            onClick={() => setUrl({ tab: tab.name }, true)}
            onKeyDown={(event) => {
              if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
              event.preventDefault();
              event.stopPropagation();
              move(event.key === "ArrowRight" ? 1 : -1);
            }}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div
        className={classes.grow}
        role="tabpanel"
        id={`pane-${open.name}`}
        aria-labelledby={`tab-${open.name}`}
      >
        {open.show()}
      </div>
    </div>
  );
}
