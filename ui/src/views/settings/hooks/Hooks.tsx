// Where the outside may call: each hook knows how its caller signs, which calls it takes, and whom they are for.
import { useMemo, useState } from "react";
import { useAnswer } from "~/api/questions";
import type { HookItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Desk, MakeNew } from "../parts/Desk";
import { Secret } from "../parts/Secret";
import { Section } from "../parts/Section";
import { Hook } from "./Hook";
import { HookForm } from "./HookForm";
import { SCHEMES, TARGETS, written } from "./mapping";

export interface Fresh {
  hook_id: string;
  secret: string;
}

export function Hooks() {
  const asked = useAnswer("/v1/webhooks/in", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Hooks in"
      lead="Addresses the outside may call. What is signed rightly and wanted becomes a message and walks the same corridor as any other."
      fills
      acts={<MakeNew word="New hook" denied={denied} />}
    >
      <Shown asked={asked} rows={8}>
        {({ items }) => <List items={items} denied={denied} />}
      </Shown>
    </Section>
  );
}

function toWhom({ mapping: { target } }: HookItem): string {
  const kind = TARGETS.find((one) => target[one]);
  return kind ? `${kind} ${written(target[kind])}` : "–";
}

function List({ items, denied }: { items: readonly HookItem[]; denied: string | undefined }) {
  const [fresh, setFresh] = useState<Fresh | null>(null);
  const columns = useMemo(
    () => [
      { id: "name", title: "Hook", cell: (hook: HookItem) => hook.name },
      {
        id: "state",
        title: "State",
        width: 96,
        cell: (hook: HookItem) =>
          hook.state === "active" ? <Tag tone="good">✓ open</Tag> : <Tag tone="idle">○ disabled</Tag>,
      },
      {
        id: "scheme",
        title: "Signed as",
        from: 480,
        width: 130,
        cell: (hook: HookItem) => SCHEMES[hook.scheme],
      },
      { id: "to", title: "For", from: 620, cell: (hook: HookItem) => toWhom(hook) },
      {
        id: "signatures",
        title: "Calls",
        from: 760,
        width: 180,
        cell: ({ signatures: { valid, invalid, missing } }: HookItem) =>
          `${valid} valid · ${invalid} invalid · ${missing} unsigned`,
      },
      {
        id: "last",
        title: "Last call",
        from: 880,
        width: 90,
        cell: (hook: HookItem) => <Ago at={hook.last_called_at} />,
      },
    ],
    [],
  );
  return (
    <Desk
      label="Hooks"
      rows={items}
      keyOf={(hook) => hook.hook_id}
      nameOf={(hook) => hook.name}
      columns={columns}
      empty={
        <Empty command='observatory hooks add "pull requests" --scheme github --intent "=action" --cluster code-reviewer'>
          Nobody outside can call in. Open a hook, try its mapping on a sample, and give its address and
          secret to the caller; or on the terminal:
        </Empty>
      }
      makes="New hook"
      making={<HookForm hook={null} denied={denied} onSecret={setFresh} />}
      one={(hook) => (
        <>
          {fresh?.hook_id === hook.hook_id && (
            <Secret secret={fresh.secret} onSeen={() => setFresh(null)}>
              Enter it at the caller: it signs its calls with it.
            </Secret>
          )}
          <Hook hook={hook} denied={denied} onSecret={setFresh} />
        </>
      )}
    />
  );
}
