// Redaction rules in force, and a dry run of a new one.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import { endRedaction } from "~/commands/settings";
import type { RedactionItem, RedactionList } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Empty, Loaded } from "~/widgets/Panel";
import { useMe, useNames, useWhyNot } from "~/widgets/users";
import { AdminsOnly } from "../parts/AdminsOnly";
import { DangerButton } from "../parts/DangerButton";
import { MakeNew, MasterDetail } from "../parts/MasterDetail";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { RedactionDryRun } from "./RedactionDryRun";
import { RedactionForm } from "./RedactionForm";

export function Redaction() {
  const me = useMe().data;
  const denied = useWhyNot("admin");
  const query = useApi("/v1/redaction", undefined, {
    enabled: me !== undefined && denied === undefined,
    every: 5_000,
    keep: true,
  });
  return (
    <Section
      title="Redaction"
      lead="Matches in a message are replaced before it is archived or hashed. Rules apply from the next message; archived messages are unchanged."
      fills
      acts={<MakeNew word="New rule" denied={denied} />}
    >
      {denied ? (
        <AdminsOnly
          denied={denied}
          what="Redaction rules"
          because="the patterns may themselves be secret"
          command="observatory redaction list"
        />
      ) : (
        <Loaded query={query} rows={6}>
          {(list) => <Rules list={list} />}
        </Loaded>
      )}
    </Section>
  );
}

function Rules({ list }: { list: RedactionList }) {
  const [, setUrl] = useUrl();
  const names = useNames();
  const columns = useMemo(
    () => [
      { id: "name", title: "Redacts", cell: (rule: RedactionItem) => rule.name },
      { id: "type", title: "Type", cell: (rule: RedactionItem) => rule.type, width: 76 },
      {
        id: "what",
        title: "Match",
        from: 480,
        cell: (rule: RedactionItem) => (
          <code className="mono">{rule.pattern ?? rule.path ?? list.kinds[rule.name] ?? ""}</code>
        ),
      },
      {
        id: "since",
        title: "Since",
        from: 620,
        width: 110,
        cell: (rule: RedactionItem) => <Ago at={rule.created_at} />,
      },
    ],
    [list.kinds],
  );
  return (
    <MasterDetail
      label="Redaction rules"
      rows={list.items}
      keyOf={(rule) => rule.rule_id}
      nameOf={(rule) => rule.name}
      columns={columns}
      empty={
        <Empty command="observatory redaction add email">
          No redaction rules: messages are archived unchanged. Create a rule here and test it on a sample; or
          on the command line:
        </Empty>
      }
      makes="New rule"
      making={<RedactionForm kinds={list.kinds} />}
      one={(rule) => (
        <>
          <div className={classes.part}>
            <dl className={classes.facts}>
              <dt>redacts</dt>
              <dd>
                {rule.pattern ? (
                  <code className={classes.code}>{rule.pattern}</code>
                ) : rule.path ? (
                  <code className={classes.code}>{rule.path}</code>
                ) : (
                  (list.kinds[rule.name] ?? rule.name)
                )}
              </dd>
              <dt>replacement</dt>
              <dd>
                <code className="mono">[redacted:{rule.name}:…]</code>
              </dd>
              <dt>since</dt>
              <dd>
                <Ago at={rule.created_at} /> by {names(rule.created_by)}, version {rule.since_version}
              </dd>
              {rule.note && (
                <>
                  <dt>note</dt>
                  <dd>{rule.note}</dd>
                </>
              )}
            </dl>
            <DangerButton
              word="Remove rule"
              does={`Remove “${rule.name}”`}
              denied={undefined}
              onYes={async () => {
                const { type, name, pattern, path, note } = rule;
                if (await endRedaction(rule.rule_id, { type, name, pattern, path, note }))
                  setUrl({ one: null });
              }}
            >
              From the next message on such text is archived unredacted, and can then only be removed by
              shredding the message. Redacted text cannot be restored.
            </DangerButton>
          </div>
          <RedactionDryRun rule={null} />
        </>
      )}
    />
  );
}
