// Text that is not kept: the rules in force, and a new one tried on a sample before it counts.
import { useMemo } from "react";
import { endRedaction } from "~/acts/settings";
import { useAnswer } from "~/api/questions";
import type { RedactionItem, RedactionList } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Empty, Shown } from "~/widgets/Panel";
import { useMe, useNames, useWhyNot } from "~/widgets/people";
import { AdminsOnly } from "../parts/AdminsOnly";
import { Danger } from "../parts/Danger";
import { Desk, MakeNew } from "../parts/Desk";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { RedactionForm } from "./RedactionForm";
import { Trial } from "./Trial";

export function Redaction() {
  const me = useMe().data;
  const denied = useWhyNot("admin");
  const asked = useAnswer("/v1/redaction", undefined, {
    enabled: me !== undefined && denied === undefined,
    every: 5_000,
    keep: true,
  });
  return (
    <Section
      title="Redaction"
      lead="What rules find in a message is replaced before anything of it is archived or hashed. It counts for the next message; what is archived stays."
      fills
      acts={<MakeNew word="New rule" denied={denied} />}
    >
      {denied ? (
        <AdminsOnly
          denied={denied}
          what="Redaction rules"
          because="what is looked for may itself be a secret"
          command="observatory redaction list"
        />
      ) : (
        <Shown asked={asked} rows={6}>
          {(list) => <Rules list={list} />}
        </Shown>
      )}
    </Section>
  );
}

function Rules({ list }: { list: RedactionList }) {
  const [, setUrl] = useUrl();
  const names = useNames();
  const columns = useMemo(
    () => [
      { id: "name", title: "Takes out", cell: (rule: RedactionItem) => rule.name },
      { id: "type", title: "By", cell: (rule: RedactionItem) => rule.type, width: 76 },
      {
        id: "what",
        title: "What",
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
    <Desk
      label="Redaction rules"
      rows={list.items}
      keyOf={(rule) => rule.rule_id}
      nameOf={(rule) => rule.name}
      columns={columns}
      empty={
        <Empty command="observatory redaction add email">
          Nothing is redacted: everything an agent sends is archived as it came. Make a rule here and try it
          on a sample first; or on the terminal:
        </Empty>
      }
      makes="New rule"
      making={<RedactionForm kinds={list.kinds} />}
      one={(rule) => (
        <>
          <div className={classes.part}>
            <dl className={classes.facts}>
              <dt>takes out</dt>
              <dd>
                {rule.pattern ? (
                  <code className={classes.code}>{rule.pattern}</code>
                ) : rule.path ? (
                  <code className={classes.code}>{rule.path}</code>
                ) : (
                  (list.kinds[rule.name] ?? rule.name)
                )}
              </dd>
              <dt>leaves</dt>
              <dd>
                <code className="mono">[redacted:{rule.name}:…]</code>
              </dd>
              <dt>since</dt>
              <dd>
                <Ago at={rule.created_at} /> by {names(rule.created_by)}, version {rule.since_version}
              </dd>
              {rule.note && (
                <>
                  <dt>why</dt>
                  <dd>{rule.note}</dd>
                </>
              )}
            </dl>
            <Danger
              word="End the rule"
              does={`End “${rule.name}”`}
              denied={undefined}
              onYes={async () => {
                const { type, name, pattern, path, note } = rule;
                if (await endRedaction(rule.rule_id, { type, name, pattern, path, note }))
                  setUrl({ one: null });
              }}
            >
              From the next message on such text is archived as it comes, and cannot be taken out again but by
              shredding the message. What was taken out does not come back.
            </Danger>
          </div>
          <Trial rule={null} />
        </>
      )}
    />
  );
}
