// The system prompt of one agent type: current version, acknowledgements, editor and history.
import { Button } from "@mantine/core";
import { useApi } from "~/api/queries";
import { rollBack } from "~/commands/instructions";
import { plural } from "~/plural";
import type { InstructionsAnswer } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { Diff } from "~/widgets/Diff";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { ErrorNotice, Loading } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import classes from "../God.module.css";
import { Bar } from "../kill/Bar";
import { readDraft, rolloutOf } from "./agentTypes";
import { Editor } from "./Editor";

export function TypeInstructions({ kind }: { kind: string }) {
  const listed = useApi("/v1/instructions", undefined, { every: 4_000, keep: true });
  // A type without instructions is 404 there: query only those with some.
  const isKnown = listed.data?.items.some((one) => one.agent_type === kind) ?? false;
  const request = useApi("/v1/instructions/{agent_type}", undefined, {
    params: { agent_type: kind },
    every: 3_000,
    enabled: isKnown,
  });
  if (isKnown && !request.data)
    return request.error ? (
      <ErrorNotice problem={request.error} again={() => void request.refetch()} />
    ) : (
      <Loading rows={5} />
    );
  return (
    <CurrentInstructions kind={kind} known={request.data ?? null} stale={request.error?.message ?? null} />
  );
}

function CurrentInstructions({
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
          <Acknowledgements known={known} />
        </>
      ) : (
        <p>No instructions issued to {kind} yet; its agents use their built-in system prompt.</p>
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

function Acknowledgements({ known }: { known: InstructionsAnswer }) {
  const { all, taken, waiting } = rolloutOf(known.agents);
  return (
    <>
      <Bar
        label="Agents that acknowledged the instructions"
        done={taken}
        of={all}
        says={`${taken} of ${plural(all, "agent")} acknowledged v${known.version}`}
      />
      {waiting.length > 0 && (
        <details className={classes.unheard}>
          <summary>
            {waiting.length} pending; it was issued <Ago at={known.created_at} />
          </summary>
          <ul>
            {waiting.map((one) => (
              <li key={one.agent_id}>
                <code>{one.agent_id}</code>{" "}
                <span className={classes.faint}>
                  {one.acknowledged_version
                    ? `acknowledged v${one.acknowledged_version}`
                    : "none acknowledged yet"}
                  {one.connected_ever && one.last_seen_at ? ", last seen " : ", never connected"}
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
                    <ConfirmInline
                      // The confirmation was typed for that version: if another is in force, it must be
                      // confirmed again.
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
                      Every agent of type {kind} receives version {one.version} again, as version{" "}
                      {known.version + 1}. The history is kept.
                    </ConfirmInline>
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
