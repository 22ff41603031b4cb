// One API key, or a new one: for a user, or for agents. Its secret is shown once.

import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { createKey, revokeKey } from "~/commands/access";
import type { KeyItem, UserItem } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { dateClock } from "~/widgets/clock";
import { useDraft } from "~/widgets/drafts";
import { Ago, Id } from "~/widgets/Figures";
import { Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import classes from "./Access.module.css";
import { useOnce } from "./OneTimeSecret";
import { expiryOf, may, PEOPLE, PERMISSIONS, type Role } from "./roles";
import { Close } from "./Users";

export function NewKey({
  users,
  onDone,
}: {
  users: readonly UserItem[];
  onDone: (key_id: string | null) => void;
}) {
  const [kept, setKept] = useDraft("god:key");
  const [role, setRole] = useState<Role>("agent");
  const [user, setUser] = useState("");
  const [agent, setAgent] = useState("");
  const [until, setUntil] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [, put] = useOnce();
  const label = kept ?? "";
  const holders = users.filter(
    (one) => !one.disabled_at && PERMISSIONS.every((p) => !may(role, p) || may(one.role, p)),
  );
  const isAgents = role === "agent";
  const ready = label.trim() !== "" && (isAgents || user !== "");
  const make = async () => {
    setBusy(true);
    setFault(null);
    const refused = (problem: Problem) => {
      if (![400, 404, 409, 422].includes(problem.code)) return false;
      setFault(problem.faults[0]?.problem ?? problem.message);
      return true;
    };
    const made = await createKey(
      {
        role,
        label: label.trim(),
        user_id: isAgents ? null : user,
        agent_id: isAgents ? agent.trim() || null : null,
        expires_at: expiryOf(until),
      },
      refused,
    );
    setBusy(false);
    if (!made) return;
    setKept(null);
    put({ title: `Key “${made.label}”`, secret: made.key ?? "", says: `Role: ${made.role}.` });
    onDone(made.key_id);
  };
  return (
    <Panel title="New key" aside={<Close onClick={() => onDone(null)} />}>
      <form
        className={classes.part}
        aria-label="New key"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) void make();
        }}
      >
        <TextInput
          size="xs"
          label="Label"
          placeholder="ci of the writers"
          value={label}
          maxLength={128}
          onChange={(event) => setKept(event.currentTarget.value || null)}
        />
        <NativeSelect
          size="xs"
          label="Role"
          data={["agent", ...PEOPLE]}
          value={role}
          onChange={(event) => {
            setRole(event.currentTarget.value as Role);
            setUser("");
          }}
        />
        {isAgents ? (
          <TextInput
            size="xs"
            label="Bound to one agent"
            description="If empty, any agent can use it; if bound, messages with another agent name are refused."
            placeholder="writer-1"
            value={agent}
            onChange={(event) => setAgent(event.currentTarget.value)}
          />
        ) : (
          <NativeSelect
            size="xs"
            label="Owner"
            description="A key cannot do more than its user."
            value={user}
            onChange={(event) => setUser(event.currentTarget.value)}
          >
            <option value="">select a user</option>
            {holders.map((one) => (
              <option key={one.user_id} value={one.user_id}>
                {one.display_name || one.name} ({one.role})
              </option>
            ))}
          </NativeSelect>
        )}
        <TextInput
          size="xs"
          type="datetime-local"
          label="Expires (your time zone)"
          description="If empty, it is valid until revoked."
          value={until}
          onChange={(event) => setUntil(event.currentTarget.value)}
        />
        {fault && (
          <p className={classes.trouble} role="alert">
            ! {fault}
          </p>
        )}
        <Button type="submit" size="compact-sm" loading={busy} disabled={!ready}>
          Create key
        </Button>
      </form>
    </Panel>
  );
}

export function Key({
  one,
  users,
  onClose,
}: {
  one: KeyItem;
  users: readonly UserItem[];
  onClose: () => void;
}) {
  const names = useNames();
  const [isAsking, setAsking] = useState(false);
  const keyOwner = users.find((user) => user.user_id === one.user_id);
  return (
    <Panel title={`Key “${one.label}”`} aside={<Close onClick={onClose} />}>
      <div className={classes.part}>
        <p className={classes.says}>
          Role {one.role}
          {keyOwner
            ? ` for ${keyOwner.display_name || keyOwner.name}`
            : one.agent_id
              ? `, bound to ${one.agent_id}`
              : ""}
          {one.scopes.length > 0 && `, only to ${one.scopes.join(", ")}`}. Created <Ago at={one.created_at} />{" "}
          by {names(one.created_by)}; begins with <Id id={one.public_id} />.
          {one.expires_at && <> Ends {dateClock(one.expires_at)}.</>}
        </p>
        {one.revoked_at ? (
          <p className={classes.says}>
            Revoked <Ago at={one.revoked_at} />.
          </p>
        ) : (
          <>
            <div className={classes.buttons}>
              <Button
                size="compact-sm"
                variant="default"
                aria-expanded={isAsking}
                onClick={() => setAsking(!isAsking)}
              >
                Revoke…
              </Button>
            </div>
            {isAsking && (
              <ConfirmInline
                does={`Revoke “${one.label}”`}
                typed={one.label.trim() || one.public_id}
                onYes={() => revokeKey(one.key_id, one.label)}
                onNo={() => setAsking(false)}
              >
                Requests with this key are refused from now on; agents keep what they could not send. This
                cannot be undone; create a new key instead.
              </ConfirmInline>
            )}
          </>
        )}
      </div>
    </Panel>
  );
}
