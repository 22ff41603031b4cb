// Users, roles and keys. Two tables, and next to them the selected or new one.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { KeyItem, UserItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { AuditTrail } from "../AuditTrail";
import classes from "./Access.module.css";
import { Key, NewKey } from "./Keys";
import { OneTimeSecret } from "./OneTimeSecret";
import { keyStanding, MEANS, may, ordered, PEOPLE, PERMISSIONS } from "./roles";
import { NewUser, User } from "./Users";

export function Access() {
  const denied = useWhyNot("admin");
  return (
    <div className={classes.board}>
      {denied ? (
        <Panel title="Users and keys">
          <Empty>Only an administrator can list users and keys. {denied}</Empty>
        </Panel>
      ) : (
        <Tables />
      )}
      {denied && <Roles />}
      <div className={classes.below}>
        <AuditTrail about="access" />
      </div>
    </div>
  );
}

function Tables() {
  const [url, setUrl] = useUrl();
  const users = useApi("/v1/users", undefined, { every: 5_000, keep: true });
  const keys = useApi("/v1/keys", undefined, { every: 5_000, keep: true });
  const now = useNow();
  const minute = Math.floor(now / 60_000);
  const people = useMemo(
    () => ordered(users.data?.items ?? [], (one) => one.disabled_at != null),
    [users.data],
  );
  const all = useMemo(() => {
    const items = users.data?.items ?? [];
    return ordered(keys.data?.items ?? [], (one) => keyStanding(one, items, minute * 60_000).ended);
  }, [keys.data, users.data, minute]);
  const userColumns = useMemo(
    (): Column<UserItem>[] => [
      { id: "name", title: "User", cell: (one) => one.display_name || one.name },
      { id: "role", title: "Role", width: 92, cell: (one) => one.role },
      {
        id: "state",
        title: "State",
        width: 122,
        cell: (one) =>
          one.disabled_at ? <Tag tone="idle">× disabled</Tag> : <Tag tone="good">✓ active</Tag>,
      },
      { id: "at", title: "Since", width: 84, from: 380, cell: (one) => <Ago at={one.created_at} /> },
    ],
    [],
  );
  const keyColumns = useMemo((): Column<KeyItem>[] => {
    const items = users.data?.items ?? [];
    const nameOf = (id: string | null) => items.find((one) => one.user_id === id)?.name;
    return [
      { id: "label", title: "Key", cell: (one) => one.label },
      { id: "role", title: "Role", width: 80, cell: (one) => one.role },
      {
        id: "whose",
        title: "Owner",
        width: 130,
        from: 420,
        cell: (one) => nameOf(one.user_id) ?? one.agent_id ?? (one.role === "agent" ? "any agent" : "none"),
      },
      {
        id: "state",
        title: "State",
        width: 150,
        cell: (one) => {
          const { word, tone } = keyStanding(one, items, minute * 60_000);
          return <Tag tone={tone}>{word}</Tag>;
        },
      },
      { id: "at", title: "Created", width: 84, from: 380, cell: (one) => <Ago at={one.created_at} /> },
    ];
  }, [users.data, minute]);
  const user = people.find((one) => one.user_id === url.user);
  const key = all.find((one) => one.key_id === url.key);
  const go = (to: { user?: string; key?: string; new?: string }) =>
    setUrl({ user: null, key: null, new: null, ...to });
  return (
    <div className={classes.tables}>
      <div className={classes.lists}>
        <Panel
          title="Users"
          aside={
            <Button size="compact-xs" variant="default" onClick={() => go({ new: "user" })}>
              New user…
            </Button>
          }
        >
          <Loaded query={users}>
            {() => (
              <div className={classes.grid}>
                <Grid
                  label="Users"
                  columns={userColumns}
                  rows={people}
                  keyOf={(one) => one.user_id}
                  current={url.user}
                  onOpen={(one) => go({ user: one.user_id })}
                />
              </div>
            )}
          </Loaded>
        </Panel>
        <Panel
          title="Keyboard shortcuts"
          aside={
            <Button size="compact-xs" variant="default" onClick={() => go({ new: "key" })}>
              New key…
            </Button>
          }
        >
          <Loaded query={keys}>
            {() => (
              <div className={classes.grid}>
                <Grid
                  label="Keys"
                  columns={keyColumns}
                  rows={all}
                  keyOf={(one) => one.key_id}
                  current={url.key}
                  onOpen={(one) => go({ key: one.key_id })}
                />
              </div>
            )}
          </Loaded>
        </Panel>
      </div>
      <aside className={classes.aside} aria-label="Selected">
        <OneTimeSecret />
        {url.new === "user" && <NewUser onDone={(user_id) => go(user_id ? { user: user_id } : {})} />}
        {url.new === "key" && (
          <NewKey users={people} onDone={(key_id) => go(key_id ? { key: key_id } : {})} />
        )}
        {user && <User key={user.user_id + user.role} user={user} keys={all} onClose={() => go({})} />}
        {key && <Key key={key.key_id} one={key} users={people} onClose={() => go({})} />}
        {(url.user && users.data && !user) || (url.key && keys.data && !key) ? (
          <Empty>No user or key has that id.</Empty>
        ) : null}
        {!user && !key && !url.new && <Roles />}
      </aside>
    </div>
  );
}

function Roles() {
  return (
    <Panel title="Role permissions" aside="an agent's key only sends">
      <table className={classes.roles} aria-label="Role permissions">
        <thead>
          <tr>
            <th scope="col">permission</th>
            {PEOPLE.map((role) => (
              <th key={role} scope="col">
                {role}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {PERMISSIONS.map((one) => (
            <tr key={one}>
              <th scope="row">
                <b>{one}</b> <span>{MEANS[one]}</span>
              </th>
              {PEOPLE.map((role) => (
                <td key={role} data-role={role} data-permission={one}>
                  {may(role, one) ? "✓" : "–"}
                  <span className="unseen">{may(role, one) ? "yes" : "no"}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
