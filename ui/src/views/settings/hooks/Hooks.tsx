// Inbound webhooks: signature scheme, filter, and target of each.
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import type { HookItem } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { MakeNew, MasterDetail } from "../parts/MasterDetail";
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
  const query = useApi("/v1/webhooks/in", undefined, { every: 5_000, keep: true });
  const denied = useWhyNot("admin");
  return (
    <Section
      title="Inbound webhooks"
      lead="URLs that third parties may call. A correctly signed, matching call becomes a message and passes the same pipeline as any other."
      fills
      acts={<MakeNew word="New webhook" denied={denied} />}
    >
      <Loaded query={query} rows={8}>
        {({ items }) => <List items={items} denied={denied} />}
      </Loaded>
    </Section>
  );
}

function targetText({ mapping: { target } }: HookItem): string {
  const kind = TARGETS.find((one) => target[one]);
  return kind ? `${kind} ${written(target[kind])}` : "–";
}

function List({ items, denied }: { items: readonly HookItem[]; denied: string | undefined }) {
  const [fresh, setFresh] = useState<Fresh | null>(null);
  const columns = useMemo(
    () => [
      { id: "name", title: "Webhook", cell: (hook: HookItem) => hook.name },
      {
        id: "state",
        title: "State",
        width: 96,
        cell: (hook: HookItem) =>
          hook.state === "active" ? <Tag tone="good">✓ enabled</Tag> : <Tag tone="idle">○ disabled</Tag>,
      },
      {
        id: "scheme",
        title: "Scheme",
        from: 480,
        width: 130,
        cell: (hook: HookItem) => SCHEMES[hook.scheme],
      },
      { id: "to", title: "Target", from: 620, cell: (hook: HookItem) => targetText(hook) },
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
    <MasterDetail
      label="Inbound webhooks"
      rows={items}
      keyOf={(hook) => hook.hook_id}
      nameOf={(hook) => hook.name}
      columns={columns}
      empty={
        <Empty command='observatory hooks add "pull requests" --scheme github --intent "=action" --cluster code-reviewer'>
          No inbound webhooks. Create one, test its mapping on a sample, and give its URL and secret to the
          caller; or on the command line:
        </Empty>
      }
      makes="New webhook"
      making={<HookForm hook={null} denied={denied} onSecret={setFresh} />}
      one={(hook) => (
        <>
          {fresh?.hook_id === hook.hook_id && (
            <Secret secret={fresh.secret} onSeen={() => setFresh(null)}>
              Configure it at the caller, which signs its calls with it.
            </Secret>
          )}
          <Hook hook={hook} denied={denied} onSecret={setFresh} />
        </>
      )}
    />
  );
}
