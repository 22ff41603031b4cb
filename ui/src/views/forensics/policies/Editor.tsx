// Rule editor: fields, the resulting sentence, a required trial over past traffic before saving, and both
// versions on an edit conflict. Typed input is kept until it is saved.
import {
  Button,
  CloseButton,
  SegmentedControl,
  Select,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useMemo, useState } from "react";
import type { Problem } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { addRule, changeRule } from "~/commands/policies";
import type { PolicyItem, PolicyList, RuleBody } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { useDraft } from "~/widgets/drafts";
import { Json } from "~/widgets/Json";
import { Empty } from "~/widgets/Panel";
import { useMe } from "~/widgets/users";
import { Conflict } from "./Conflict";
import classes from "./Policies.module.css";
import {
  bodyOf,
  type Draft,
  draftOf,
  EFFECTS,
  isSame,
  NEW,
  type Part,
  readDraft,
  riskOf,
  STOPPABLE,
  sentence,
  textOf,
} from "./rules";
import { Danger, TrialResult, useTrial } from "./Trial";

interface KeptDraft {
  draft: Draft;
  /** The rule as it was when editing started; null for a new one. */
  was: RuleBody | null;
}

interface Props {
  rule_id: string;
  list: PolicyList;
  denied: string | undefined;
  onClose: () => void;
}

/** The draft, or else the rule as saved. */
function useKept(
  rule_id: string,
  rule: PolicyItem | undefined,
): [KeptDraft, (kept: KeptDraft | null) => void, boolean] {
  const [text, setText] = useDraft(`policy ${rule_id}`);
  const kept = useMemo(
    () =>
      text !== null
        ? (JSON.parse(text) as KeptDraft)
        : { draft: rule ? draftOf(rule) : NEW, was: rule ? bodyOf(rule) : null },
    [text, rule],
  );
  return [kept, (next) => setText(next === null ? null : JSON.stringify(next)), text !== null];
}

export function Editor({ rule_id, list, denied, onClose }: Props) {
  const rule = list.items.find((one) => one.rule_id === rule_id);
  const [kept, setKept, isChanged] = useKept(rule_id, rule);
  const { draft, was } = kept;
  const { body, faults } = readDraft(draft);
  const trial = useTrial(body);
  const agents = useApi("/v1/agents", undefined, { every: 15_000, keep: true });
  const me = useMe().data?.user_id;
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const isNew = was === null;
  if (!rule && !isChanged && rule_id !== "new")
    return (
      <Empty>
        No rule has that id: it was removed or never existed.{" "}
        <button type="button" className={classes.link} onClick={onClose}>
          Back to the rules
        </button>
      </Empty>
    );
  const gone = !isNew && rule === undefined;
  const theirs = !isNew && rule !== undefined && !isSame(rule, was) ? bodyOf(rule) : null;
  const unchanged = !isNew && !gone && isSame(body, was);
  const risk = trial.found ? riskOf(body, trial.found, agents.data?.items ?? [], me) : null;
  const change = (changes: Partial<Draft>) => {
    setRefusal(null);
    setAsking(false);
    setKept({ draft: { ...draft, ...changes }, was });
  };
  const end = () => {
    setKept(null);
    onClose();
  };
  const save = async (confirm: boolean) => {
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason === "stale_rule" || (problem.code === 404 && !isNew)) refetch("/v1/policies");
      else if (problem.reason === "locks_everyone_out") setAsking(true);
      else if (problem.code === 422) setRefusal(problem.message);
      else return false;
      return true;
    };
    const saved =
      isNew || gone
        ? await addRule(body, null, confirm, refused)
        : await changeRule(rule_id, body, was, {
            confirm,
            text: "The rule is changed; it applies from the next message.",
            refused,
          });
    setBusy(false);
    if (saved) end();
  };
  const why =
    denied ??
    (Object.keys(faults).length
      ? "Fix the errors above"
      : theirs
        ? "Resolve the conflict first"
        : unchanged
          ? "No changes"
          : trial.found
            ? undefined
            : "Test it first: rules must be tested before saving");
  const typed = risk?.typed ?? null;
  return (
    <form
      className={classes.editor}
      aria-label={isNew ? "New rule" : `Rule ${rule?.position ?? ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (why === undefined) typed === null ? void save(false) : setAsking(true);
      }}
    >
      <header className={classes.head}>
        <h2>{isNew ? "New rule" : gone ? "Removed rule" : `Rule ${rule?.position}`}</h2>
        <CloseButton size="sm" aria-label="Close; your input is kept" onClick={onClose} />
      </header>
      {(theirs || gone) && (
        <Conflict
          mine={body}
          theirs={theirs}
          onMine={() => setKept({ draft, was: theirs })}
          onTheirs={() => (theirs ? setKept(null) : end())}
        />
      )}
      <p className={classes.sentence} data-tone={EFFECTS[body.effect].tone} aria-live="polite">
        {sentence(body)}
        {!draft.enabled && " It is disabled."}
      </p>
      {denied && <p className={classes.faint}>{denied}</p>}
      <Fields
        draft={draft}
        faults={faults}
        change={change}
        denied={denied !== undefined}
        suggest={suggestions(agents.data?.items ?? [])}
      />
      <section className={classes.part} aria-label="Trial">
        <div className={classes.buttons}>
          <Button
            size="compact-sm"
            variant={trial.found ? "default" : "filled"}
            loading={trial.busy}
            disabled={denied !== undefined || Object.keys(faults).length > 0}
            title={denied}
            onClick={() => void trial.run()}
          >
            Test against{" "}
            {trial.minutes === 60 ? "the last hour" : trial.minutes === 1_440 ? "the last day" : "15 minutes"}
          </Button>
          <Select
            size="xs"
            w={120}
            aria-label="Time range"
            allowDeselect={false}
            disabled={denied !== undefined}
            value={String(trial.minutes)}
            data={[
              { value: "15", label: "15 minutes" },
              { value: "60", label: "1 hour" },
              { value: "1440", label: "1 day" },
            ]}
            onChange={(minutes) => trial.over(Number(minutes))}
          />
        </div>
        {risk && risk.says.length > 0 && <Danger says={risk.says} />}
        <TrialResult trial={trial} effect={body.effect} />
      </section>
      {refusal && (
        <p className={classes.danger} role="alert">
          ! {refusal}
        </p>
      )}
      {asking ? (
        <ConfirmInline
          does={isNew || gone ? "Add this rule" : "Save this rule"}
          typed={typed ?? "deny everything"}
          onYes={() => save(true)}
          onNo={() => setAsking(false)}
        >
          <p>{sentence(body)} It applies from the next message. Stopped messages are archived, not lost.</p>
        </ConfirmInline>
      ) : (
        <div className={classes.buttons}>
          <Button type="submit" size="compact-sm" loading={busy} disabled={why !== undefined} title={why}>
            {isNew || gone ? "Add rule" : "Save rule"}
            {typed !== null && "…"}
          </Button>
          {isChanged && (
            <Button size="compact-sm" variant="default" onClick={end}>
              Discard changes
            </Button>
          )}
          {why && !denied && !unchanged && <span className={classes.faint}>{why}.</span>}
        </div>
      )}
      <details>
        <summary>As JSON, for the API</summary>
        <Json value={textOf(body)} label="The rule as JSON" />
      </details>
    </form>
  );
}

const sorted = (words: Iterable<string | null>) =>
  [...new Set(words)].filter((word): word is string => word !== null).sort();

function suggestions(
  agents: readonly { agent_id: string; agent_type: string | null; cluster_id: string | null }[],
) {
  const clusters = sorted(agents.map((one) => one.cluster_id));
  const parties = [
    ...sorted(agents.map((one) => one.agent_type)).map((one) => `type:${one}`),
    ...clusters.map((one) => `cluster:${one}`),
    ...sorted(agents.map((one) => one.agent_id)),
  ];
  return { sender: parties, recipient: parties, message_type: STOPPABLE, tool: [], cluster: clusters };
}

const PARTS: readonly [Part, string, string][] = [
  ["sender", "Sender", "any agent; a name, type:…, cluster:…"],
  ["recipient", "Recipient", "any; a name, type:…, cluster:…, session:…"],
  ["tool", "Tool", "any or none; deploy_* matches every deploy_…"],
  ["message_type", "Message type", "all that can be stopped"],
  ["cluster", "Cluster", "any"],
];

function Fields({
  draft,
  faults,
  change,
  denied,
  suggest,
}: {
  draft: Draft;
  faults: ReturnType<typeof readDraft>["faults"];
  change: (changes: Partial<Draft>) => void;
  denied: boolean;
  suggest: Record<Part, string[]>;
}) {
  return (
    <fieldset className={classes.fields} disabled={denied}>
      <legend className="unseen">Rule</legend>
      <SegmentedControl
        size="xs"
        aria-label="Effect"
        disabled={denied}
        data={(["deny", "hold", "allow"] as const).map((one) => ({
          value: one,
          label: `${EFFECTS[one].mark} ${EFFECTS[one].word}`,
        }))}
        value={draft.effect}
        onChange={(effect) => change({ effect })}
      />
      {PARTS.map(([part, label, hint]) => (
        <TagsInput
          key={part}
          size="xs"
          label={label}
          placeholder={draft.match[part].length ? undefined : hint}
          value={draft.match[part]}
          data={suggest[part]}
          limit={20}
          maxTags={100}
          acceptValueOnBlur
          disabled={denied}
          error={faults[part]}
          onChange={(words) =>
            change({ match: { ...draft.match, [part]: words.map((one) => one.trim()).filter(Boolean) } })
          }
        />
      ))}
      {draft.effect === "hold" && (
        <div className={classes.pair}>
          <TextInput
            size="xs"
            label="Approvals required"
            inputMode="numeric"
            value={draft.quorum}
            error={faults.quorum}
            onChange={(event) => change({ quorum: event.currentTarget.value })}
          />
          <TextInput
            size="xs"
            label="Deadline"
            placeholder="none; 15 min, 1 h"
            value={draft.deadline}
            error={faults.deadline}
            onChange={(event) => change({ deadline: event.currentTarget.value })}
          />
          <Select
            size="xs"
            label="After the deadline"
            allowDeselect={false}
            disabled={denied || !draft.deadline}
            value={draft.on_expiry}
            data={[
              { value: "deny", label: "deny" },
              { value: "approve", label: "allow" },
            ]}
            onChange={(on_expiry) => change({ on_expiry: on_expiry === "approve" ? "approve" : "deny" })}
          />
        </div>
      )}
      <Textarea
        size="xs"
        label="Note"
        placeholder="shown in the list"
        autosize
        minRows={1}
        maxRows={5}
        value={draft.note}
        error={faults.note}
        onChange={(event) => change({ note: event.currentTarget.value })}
      />
      <Switch
        size="xs"
        label="Enabled from the next message"
        checked={draft.enabled}
        onChange={(event) => change({ enabled: event.currentTarget.checked })}
      />
    </fieldset>
  );
}
