// One user: role, sign-in link, disable; or a new one. Each change shows beforehand which permissions it adds
// and removes.
import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { refetch } from "~/api/queries";
import { changeRole, createUser, disableUser } from "~/commands/access";
import { plural } from "~/plural";
import type { KeyItem, UserItem } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { useDraft } from "~/widgets/drafts";
import { Ago, Id } from "~/widgets/Figures";
import { Panel } from "~/widgets/Panel";
import { useMe } from "~/widgets/users";
import classes from "./Access.module.css";
import { useOnce } from "./OneTimeSecret";
import { difference, PEOPLE, type Role } from "./roles";

export function NewUser({ onDone }: { onDone: (user_id: string | null) => void }) {
  const [kept, setKept] = useDraft("god:user");
  const [role, setRole] = useState<Role>("viewer");
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [, put] = useOnce();
  const name = kept ?? "";
  const make = async () => {
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.code !== 409 && problem.code !== 422 && problem.code !== 400) return false;
      setFault(problem.faults[0]?.problem ?? problem.message);
      return true;
    };
    const made = await createUser({ name: name.trim(), role }, refused);
    setBusy(false);
    if (!made) return;
    setKept(null);
    put({
      title: `Invitation for ${made.name}`,
      secret: made.invite_url ?? "",
      says: "Anyone who opens this link is signed in as this user.",
    });
    onDone(made.user_id);
  };
  return (
    <Panel title="New user" aside={<Close onClick={() => onDone(null)} />}>
      <form
        className={classes.part}
        aria-label="New user"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) void make();
        }}
      >
        <TextInput
          size="xs"
          label="Name"
          placeholder="ada"
          value={name}
          error={fault}
          maxLength={128}
          onChange={(event) => {
            setFault(null);
            setKept(event.currentTarget.value || null);
          }}
        />
        <NativeSelect
          size="xs"
          label="Role"
          data={[...PEOPLE]}
          value={role}
          onChange={(event) => setRole(event.currentTarget.value as Role)}
        />
        <p className={classes.says}>
          A {role} {difference("none", role)}
        </p>
        <Button type="submit" size="compact-sm" loading={busy} disabled={!name.trim()}>
          Create user and show invitation
        </Button>
      </form>
    </Panel>
  );
}

export function Close({ onClick }: { onClick: () => void }) {
  return (
    <Button size="compact-xs" variant="subtle" onClick={onClick}>
      Close
    </Button>
  );
}

/** In the form the command line takes without quotes. */
const plain = ({ name, user_id }: UserItem) => (/^[\w.@-]+$/.test(name) ? name : user_id);

export function User({
  user,
  keys,
  onClose,
}: {
  user: UserItem;
  keys: readonly KeyItem[];
  onClose: () => void;
}) {
  const me = useMe().data;
  const [role, setRole] = useState<Role>(user.role as Role);
  const [isAsking, setAsking] = useState(false);
  const [stale, setStale] = useState<string | null>(null);
  const name = user.display_name || user.name;
  const mine = keys.filter((one) => one.user_id === user.user_id && !one.revoked_at).length;
  const refused = (problem: Problem) => {
    if (problem.reason !== "stale_role" && problem.reason !== "last_admin") return false;
    setStale(problem.message);
    refetch("/v1/users");
    return true;
  };
  return (
    <Panel title={name} aside={<Close onClick={onClose} />}>
      <div className={classes.part}>
        <p className={classes.says}>
          {user.name}, {user.role}, since <Ago at={user.created_at} />; {plural(mine, "key")}{" "}
          <Id id={user.user_id} />
        </p>
        {stale && (
          <p className={classes.trouble} role="alert">
            ! Not changed: {stale}.
          </p>
        )}
        {user.disabled_at ? (
          <p className={classes.says}>
            Disabled <Ago at={user.disabled_at} />: cannot sign in, and their keys are revoked. This cannot be
            undone; create a new user instead.
          </p>
        ) : (
          <>
            <NativeSelect
              size="xs"
              label="Role"
              data={[...PEOPLE]}
              value={role}
              onChange={(event) => setRole(event.currentTarget.value as Role)}
            />
            {role !== user.role && (
              <ConfirmInline
                does={`Change role of ${user.name} to ${role}`}
                danger={false}
                takesFocus={false}
                onYes={() => changeRole(user, role, refused)}
                onNo={() => setRole(user.role as Role)}
              >
                {user.name} {difference(user.role, role)} It applies from their next request; keys that could
                do more are revoked.
              </ConfirmInline>
            )}
            <div className={classes.buttons}>
              <Button
                size="compact-sm"
                variant="default"
                disabled={user.user_id === me?.user_id}
                title={user.user_id === me?.user_id ? "You cannot disable yourself." : undefined}
                aria-expanded={isAsking}
                onClick={() => setAsking(!isAsking)}
              >
                Disable…
              </Button>
            </div>
            <p className={classes.says}>
              A one-time login link for {user.name} is created with a key on the gateway's machine:{" "}
              <code>observatory login --user {plain(user)}</code>
            </p>
            {isAsking && (
              <ConfirmInline
                does={`Disable ${user.name}`}
                typed={user.name}
                onYes={() => disableUser(user)}
                onNo={() => setAsking(false)}
              >
                {name} is signed out everywhere at once and {plural(mine, "key is", "keys are")} revoked. This
                cannot be undone; their actions stay in the audit trail.
              </ConfirmInline>
            )}
          </>
        )}
      </div>
    </Panel>
  );
}
