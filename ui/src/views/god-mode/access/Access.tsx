// Users, roles and keys: who may do what. Two tables, and beside them what is chosen, or what is being made.
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useAnswer } from "~/api/questions";
import type { KeyItem, UserItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { type Column, Grid } from "~/widgets/Grid";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Trail } from "../Trail";
import classes from "./Access.module.css";
import { Key, NewKey } from "./Keys";
import { Once } from "./Once";
import { keyStanding, MEANS, may, ordered, PEOPLE, PERMISSIONS } from "./roles";
import { NewUser, User } from "./Users";

export function Access() {
  const denied = useWhyNot("admin");
  return (
    <div className={classes.board}>
      {denied ? (
        <Panel title="Users and keys">
          <Empty command="observatory whoami">
            {denied} Who the users are and which keys there are only an administrator sees. Who you are:
          </Empty>
        </Panel>
      ) : (
        <Tables />
      )}
      {denied && <Roles />}
      <div className={classes.below}>
        <Trail about="access" />
      </div>
    </div>
  );
}

function Tables() {
  const [url, setUrl] = useUrl();
  const users = useAnswer("/v1/users", undefined, { every: 5_000, keep: true });
  const keys = useAnswer("/v1/keys", undefined, { every: 5_000, keep: true });
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
          one.disabled_at ? <Tag tone="idle">× disabled</Tag> : <Tag tone="good">✓ may sign in</Tag>,
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
        title: "Whose",
        width: 130,
        from: 420,
        cell: (one) => nameOf(one.user_id) ?? one.agent_id ?? (one.role === "agent" ? "any agent" : "nobody"),
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
      { id: "at", title: "Made", width: 84, from: 380, cell: (one) => <Ago at={one.created_at} /> },
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
          <Shown asked={users}>
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
          </Shown>
        </Panel>
        <Panel
          title="Keys"
          aside={
            <Button size="compact-xs" variant="default" onClick={() => go({ new: "key" })}>
              New key…
            </Button>
          }
        >
          <Shown asked={keys}>
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
          </Shown>
        </Panel>
      </div>
      <aside className={classes.aside} aria-label="Chosen">
        <Once />
        {url.new === "user" && <NewUser onDone={(user_id) => go(user_id ? { user: user_id } : {})} />}
        {url.new === "key" && (
          <NewKey users={people} onDone={(key_id) => go(key_id ? { key: key_id } : {})} />
        )}
        {user && <User key={user.user_id + user.role} user={user} keys={all} onClose={() => go({})} />}
        {key && <Key key={key.key_id} one={key} users={people} onClose={() => go({})} />}
        {(url.user && users.data && !user) || (url.key && keys.data && !key) ? (
          <Empty>Nobody and no key has that id here.</Empty>
        ) : null}
        {!user && !key && !url.new && <Roles />}
      </aside>
    </div>
  );
}

function Roles() {
  return (
    <Panel title="What each role may" aside="an agent's key only sends">
      <table className={classes.roles} aria-label="What each role may">
        <thead>
          <tr>
            <th scope="col">may</th>
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
