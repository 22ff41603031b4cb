// A rule as it is made or changed: fields, the sentence they come to, a trial over the past that must be made before
// it can be saved, and both versions when somebody else was first. What is typed is kept until it is saved.
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
import { addRule, changeRule } from "~/acts/policies";
import type { Problem } from "~/api/client";
import { askAgain, useAnswer } from "~/api/questions";
import type { PolicyItem, PolicyList, RuleBody } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { Json } from "~/widgets/Json";
import { Empty } from "~/widgets/Panel";
import { useMe } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
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
import { Danger, Found, useTrial } from "./Trial";

interface Kept {
  draft: Draft;
  /** The rule that was seen when it was begun; null for a new one. */
  was: RuleBody | null;
}

interface Props {
  rule_id: string;
  list: PolicyList;
  denied: string | undefined;
  onClose: () => void;
}

/** What is being changed, or else the rule as it stands. */
function useKept(
  rule_id: string,
  rule: PolicyItem | undefined,
): [Kept, (kept: Kept | null) => void, boolean] {
  const [text, setText] = useDraft(`policy ${rule_id}`);
  const kept = useMemo(
    () =>
      text !== null
        ? (JSON.parse(text) as Kept)
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
  const agents = useAnswer("/v1/agents", undefined, { every: 15_000, keep: true });
  const me = useMe().data?.user_id;
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const isNew = was === null;
  if (!rule && !isChanged && rule_id !== "new")
    return (
      <Empty>
        No rule has that id: it was removed, or never was.{" "}
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
      if (problem.reason === "stale_rule" || (problem.code === 404 && !isNew)) askAgain("/v1/policies");
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
            text: "The rule is changed, from the next message on.",
            refused,
          });
    setBusy(false);
    if (saved) end();
  };
  const why =
    denied ??
    (Object.keys(faults).length
      ? "Something above is not right yet"
      : theirs
        ? "Decide about theirs first"
        : unchanged
          ? "Nothing is changed"
          : trial.found
            ? undefined
            : "Test it first: nothing is saved untested");
  const typed = risk?.typed ?? null;
  return (
    <form
      className={classes.editor}
      aria-label={isNew ? "A new rule" : `Rule ${rule?.position ?? ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (why === undefined) typed === null ? void save(false) : setAsking(true);
      }}
    >
      <header className={classes.head}>
        <h2>{isNew ? "A new rule" : gone ? "A rule that was removed" : `Rule ${rule?.position}`}</h2>
        <CloseButton size="sm" aria-label="close; what you typed is kept" onClick={onClose} />
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
        {!draft.enabled && " It is off."}
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
            aria-label="How far back"
            allowDeselect={false}
            disabled={denied !== undefined}
            value={String(trial.minutes)}
            data={[
              { value: "15", label: "15 minutes" },
              { value: "60", label: "an hour" },
              { value: "1440", label: "a day" },
            ]}
            onChange={(minutes) => trial.over(Number(minutes))}
          />
        </div>
        {risk && risk.says.length > 0 && <Danger says={risk.says} />}
        <Found trial={trial} effect={body.effect} />
      </section>
      {refusal && (
        <p className={classes.danger} role="alert">
          ! {refusal}
        </p>
      )}
      {asking ? (
        <Sure
          does={isNew || gone ? "Add this rule" : "Save this rule"}
          typed={typed ?? "deny everything"}
          onYes={() => save(true)}
          onNo={() => setAsking(false)}
        >
          <p>{sentence(body)} It counts for the very next message. What it stops is archived, not lost.</p>
        </Sure>
      ) : (
        <div className={classes.buttons}>
          <Button type="submit" size="compact-sm" loading={busy} disabled={why !== undefined} title={why}>
            {isNew || gone ? "Add rule" : "Save rule"}
            {typed !== null && "…"}
          </Button>
          {isChanged && (
            <Button size="compact-sm" variant="default" onClick={end}>
              Throw the changes away
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
  ["sender", "Who sends", "any agent; a name, type:…, cluster:…"],
  ["recipient", "To whom", "anybody; a name, type:…, cluster:…, session:…"],
  ["tool", "With which tool", "any or none; deploy_* is every deploy_…"],
  ["message_type", "Which messages", "all that can be stopped"],
  ["cluster", "Sender's cluster", "any"],
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
      <legend className="unseen">What the rule says</legend>
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
            label="People who must approve"
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
              { value: "deny", label: "it is denied" },
              { value: "approve", label: "it is let through" },
            ]}
            onChange={(on_expiry) => change({ on_expiry: on_expiry === "approve" ? "approve" : "deny" })}
          />
        </div>
      )}
      <Textarea
        size="xs"
        label="Why"
        placeholder="it is shown in the list"
        autosize
        minRows={1}
        maxRows={5}
        value={draft.note}
        error={faults.note}
        onChange={(event) => change({ note: event.currentTarget.value })}
      />
      <Switch
        size="xs"
        label="On: it rules from the next message"
        checked={draft.enabled}
        onChange={(event) => change({ enabled: event.currentTarget.checked })}
      />
    </fieldset>
  );
}
