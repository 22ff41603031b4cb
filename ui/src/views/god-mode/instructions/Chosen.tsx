// One class: its words in force, who has taken them, the editor and the history.
import { Button } from "@mantine/core";
import { rollBack } from "~/acts/instructions";
import { useAnswer } from "~/api/questions";
import type { InstructionsAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { Diff } from "~/widgets/Diff";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Loading, Trouble } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import classes from "../God.module.css";
import { Bar } from "../kill/Bar";
import { readDraft, rolloutOf } from "./classes";
import { Editor } from "./Editor";

export function Chosen({ kind }: { kind: string }) {
  const listed = useAnswer("/v1/instructions", undefined, { every: 4_000, keep: true });
  // A class that was never instructed is 404 there: ask only for one that was.
  const isKnown = listed.data?.items.some((one) => one.agent_type === kind) ?? false;
  const asked = useAnswer("/v1/instructions/{agent_type}", undefined, {
    params: { agent_type: kind },
    every: 3_000,
    enabled: isKnown,
  });
  if (isKnown && !asked.data)
    return asked.error ? (
      <Trouble problem={asked.error} again={() => void asked.refetch()} />
    ) : (
      <Loading rows={5} />
    );
  return <Words kind={kind} known={asked.data ?? null} stale={asked.error?.message ?? null} />;
}

function Words({
  kind,
  known,
  stale,
}: {
  kind: string;
  known: InstructionsAnswer | null;
  stale: string | null;
}) {
  const names = useNames();
  const denied = useWhyNot("admin");
  const [kept, setKept] = useDraft(`god:instructions:${kind}`);
  const draft = readDraft(kept);
  const version = known?.version ?? 0;
  return (
    <section className={classes.chosen} aria-label={`Instructions of ${kind}`}>
      {stale && <p className={classes.note}>Not up to date: {stale}</p>}
      {known ? (
        <>
          <p>
            <b>Version {version} is in force</b>, issued <Ago at={known.created_at} /> by{" "}
            {names(known.created_by)}
            {known.note && `: “${known.note}”`}.
          </p>
          <Taken known={known} />
        </>
      ) : (
        <p>No instructions were ever issued to {kind}; its agents work by what they were started with.</p>
      )}
      {draft ? (
        <Editor
          kind={kind}
          known={known}
          draft={draft}
          set={(next) => setKept(next && JSON.stringify(next))}
        />
      ) : (
        <>
          {known && (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a long text must be scrollable by keyboard
            <pre className={classes.text} tabIndex={0}>
              {known.text}
            </pre>
          )}
          <div className={classes.buttons}>
            <Button
              size="compact-sm"
              variant="default"
              disabled={denied !== undefined}
              title={denied}
              onClick={() => setKept(JSON.stringify({ text: known?.text ?? "", note: "", was: version }))}
            >
              {known ? "Write new instructions…" : "Write the first instructions…"}
            </Button>
            {denied && <span className={classes.faint}>{denied}</span>}
          </div>
        </>
      )}
      {known && known.history.length > 1 && <History kind={kind} known={known} denied={denied} />}
    </section>
  );
}

function Taken({ known }: { known: InstructionsAnswer }) {
  const { all, taken, waiting } = rolloutOf(known.agents);
  return (
    <>
      <Bar
        label="Agents that took the instructions"
        done={taken}
        of={all}
        says={`${taken} of ${all} ${all === 1 ? "agent has" : "agents have"} taken version ${known.version}`}
      />
      {waiting.length > 0 && (
        <details className={classes.unheard}>
          <summary>
            {waiting.length} {waiting.length === 1 ? "has" : "have"} not; it was issued{" "}
            <Ago at={known.created_at} />
          </summary>
          <ul>
            {waiting.map((one) => (
              <li key={one.agent_id}>
                <code>{one.agent_id}</code>{" "}
                <span className={classes.faint}>
                  {one.acknowledged_version
                    ? `works by version ${one.acknowledged_version}`
                    : "took none yet"}
                  {one.connected_ever && one.last_seen_at ? ", last heard " : ", never connected"}
                  {one.connected_ever && one.last_seen_at && <Ago at={one.last_seen_at} />}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function History({
  kind,
  known,
  denied,
}: {
  kind: string;
  known: InstructionsAnswer;
  denied: string | undefined;
}) {
  const [url, setUrl] = useUrl();
  const names = useNames();
  const open = url.version;
  return (
    <details className={classes.past} open={open !== undefined}>
      <summary>History ({known.history.length})</summary>
      <ol className={classes.versions} aria-label={`Versions of ${kind}`}>
        {known.history.map((one) => {
          const isNow = one.version === known.version;
          const isOpen = open === String(one.version);
          return (
            <li key={one.version}>
              <span>
                <b>v{one.version}</b> <Ago at={one.created_at} /> by {names(one.created_by)}{" "}
                {isNow && <Tag tone="good">✓ in force</Tag>} <span className={classes.faint}>{one.note}</span>
              </span>
              {!isNow && (
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-expanded={isOpen}
                  onClick={() => setUrl({ version: isOpen ? null : String(one.version) }, true)}
                >
                  Compare, roll back…<span className="unseen"> version {one.version}</span>
                </Button>
              )}
              {isOpen && !isNow && (
                <div className={classes.compare}>
                  <Diff
                    before={known.text}
                    after={one.text}
                    label={`From version ${known.version} to ${one.version}`}
                  />
                  {denied ? (
                    <p className={classes.faint}>{denied}</p>
                  ) : (
                    <Sure
                      // What was typed was typed over that version: another in force asks anew.
                      key={known.version}
                      does={`Roll back to version ${one.version}`}
                      typed={kind}
                      onYes={() =>
                        rollBack(kind, one.version, known.version).then((done) => {
                          if (done) setUrl({ version: null }, true);
                        })
                      }
                      onNo={() => setUrl({ version: null }, true)}
                    >
                      Every agent of {kind} is told the words of version {one.version} again, as version{" "}
                      {known.version + 1}. Nothing of the history goes.
                    </Sure>
                  )}
                </div>
              )}
            </li>
          );
        })}
      </ol>
    </details>
  );
}
