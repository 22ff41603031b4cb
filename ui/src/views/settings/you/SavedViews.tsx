// Saved views: named addresses, private and shared.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import type { ViewItem } from "~/protocol/openapi";
import { removeView, useOpenView, useViewList } from "~/shell/saved";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import own from "./SavedViews.module.css";

export function SavedViews() {
  const query = useViewList();
  const open = useOpenView();
  const names = useNames();
  // biome-ignore lint/correctness/useExhaustiveDependencies: names change with the list of people only
  const columns = useMemo<Column<ViewItem>[]>(
    () => [
      { id: "name", title: "View", cell: (view) => view.name },
      { id: "query", title: "Shows", from: 480, cell: (view) => <code className="mono">{view.query}</code> },
      {
        id: "whose",
        title: "Owner",
        from: 620,
        width: 130,
        cell: (view) => (view.mine ? (view.shared ? "yours, shared" : "yours") : names(view.owner_id)),
      },
      { id: "at", title: "Saved", from: 720, width: 96, cell: (view) => <Ago at={view.created_at} /> },
      {
        id: "remove",
        title: "",
        width: 84,
        cell: (view) =>
          view.mine && (
            <Button size="compact-xs" variant="default" onClick={() => void removeView(view)}>
              Remove<span className="unseen"> {view.name}</span>
            </Button>
          ),
      },
    ],
    [],
  );
  return (
    <Panel title="Saved views">
      <Loaded query={query} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>
              None yet. In any view, the bookmark in the top bar saves the whole address under a name.
            </Empty>
          ) : (
            <div className={own.views}>
              <Grid
                label="Saved views"
                columns={columns}
                rows={items}
                keyOf={(view) => view.view_id}
                onOpen={open}
              />
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}
