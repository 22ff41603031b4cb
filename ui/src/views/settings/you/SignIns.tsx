// Browsers that are signed in, and links nobody followed yet: one's own, an administrator's everybody's.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { endSignIn } from "~/acts/access";
import { useAnswer } from "~/api/questions";
import type { LoginItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { useNames } from "~/widgets/people";
import own from "./SavedViews.module.css";

const kindOf = ({ current, kind }: LoginItem) =>
  current ? "this browser" : kind === "link" ? "link, not followed yet" : "browser";

export function SignIns() {
  const asked = useAnswer("/v1/logins", undefined, { every: 10_000, keep: true });
  const names = useNames();
  // biome-ignore lint/correctness/useExhaustiveDependencies: names change with the list of people only
  const columns = useMemo<Column<LoginItem>[]>(
    () => [
      { id: "who", title: "Who", cell: (one) => names(one.user_id) },
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
      <Shown asked={asked} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>Nobody is signed in by a link; you are here with a key.</Empty>
          ) : (
            <div className={own.views}>
              <Grid label="Sign-ins" columns={columns} rows={items} keyOf={(one) => one.login_id} />
            </div>
          )
        }
      </Shown>
    </Panel>
  );
}
