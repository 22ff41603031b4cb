// Signed-in browsers and unused sign-in links: one's own; for an admin everyone's.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { endSignIn } from "~/commands/access";
import type { LoginItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import own from "./SavedViews.module.css";

const kindOf = ({ current, kind }: LoginItem) =>
  current ? "this browser" : kind === "link" ? "link, not used yet" : "browser";

export function SignIns() {
  const query = useApi("/v1/logins", undefined, { every: 10_000, keep: true });
  const names = useNames();
  // biome-ignore lint/correctness/useExhaustiveDependencies: names change with the list of people only
  const columns = useMemo<Column<LoginItem>[]>(
    () => [
      { id: "who", title: "User", cell: (one) => names(one.user_id) },
      { id: "kind", title: "Sign-in", from: 420, width: 160, cell: kindOf },
      { id: "since", title: "Since", from: 620, width: 96, cell: (one) => <Ago at={one.created_at} /> },
      {
        id: "used",
        title: "Last used",
        width: 96,
        cell: (one) => (one.last_used_at ? <Ago at={one.last_used_at} /> : "–"),
      },
      {
        id: "end",
        title: "",
        width: 72,
        cell: (one) => (
          <Button size="compact-xs" variant="default" onClick={() => void endSignIn(one)}>
            End<span className="unseen"> {one.login_id}</span>
          </Button>
        ),
      },
    ],
    [],
  );
  return (
    <Panel title="Sign-ins">
      <Loaded query={query} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>No sign-ins by link; you signed in with a key.</Empty>
          ) : (
            <div className={own.views}>
              <Grid label="Sign-ins" columns={columns} rows={items} keyOf={(one) => one.login_id} />
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}
