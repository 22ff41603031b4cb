// Interventions in the session, newest first: time, command, agent, state, operator, the hash before and
// after, the exact bytes behind a hash, and undo where possible.
import { Button, Modal } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { bytes, type Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import { undo } from "~/commands/session";
import { plural } from "~/plural";
import type { HoldItem, InterventionItem } from "~/protocol/openapi";
import { Diff } from "~/widgets/Diff";
import { Ago, Id } from "~/widgets/Figures";
import { pretty } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "./InterventionTable.module.css";
import { acknowledged, COMMANDS, canUndo } from "./interventionState";

interface Listed {
  request: { data: unknown; error: Problem | null; isPending: boolean; refetch: () => unknown };
  items: readonly InterventionItem[];
  holds: readonly HoldItem[];
  denied: string | undefined;
}

export function InterventionTable({ request, items, holds, denied }: Listed) {
  const me = useApi("/v1/whoami").data?.user_id;
  const [shown, setShown] = useState<InterventionItem | null>(null);
  const held = new Set(holds.map((hold) => hold.message_id));
  return (
    <Loaded query={request}>
      {() =>
        items.length === 0 ? (
          <Empty>No interventions.</Empty>
        ) : (
          <>
            <table className={classes.record}>
              <thead>
                <tr>
                  <th>When</th>
                  <th>Command</th>
                  <th>Agent</th>
                  <th>State</th>
                  <th>By</th>
                  <th>Before → after</th>
                  <th>
                    <span className="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {items.map((item) => (
                  <tr key={item.intervention_id} data-back={item.reversed_at !== null || undefined}>
                    <td>
                      <Ago at={item.issued_at} />
                    </td>
                    <td>
                      <span aria-hidden>◆</span> {COMMANDS[item.command]?.word ?? item.command}
                      {item.note && <span className={classes.note}> “{item.note}”</span>}
                    </td>
                    <td>{item.agent_id ?? "–"}</td>
                    <td>
                      <State item={item} />
                    </td>
                    <td>{me && item.operator_id.endsWith(me) ? "you" : <Id id={item.operator_id} />}</td>
                    <td>
                      <Hash hash={item.before_hash} /> → <Hash hash={item.after_hash} />
                    </td>
                    <td className={classes.acts}>
                      {item.message_id && (
                        <Button size="compact-xs" variant="default" onClick={() => setShown(item)}>
                          Exact bytes
                        </Button>
                      )}
                      {canUndo(item, held) && (
                        <Button
                          size="compact-xs"
                          variant="default"
                          disabled={denied !== undefined}
                          title={denied}
                          onClick={() => void undo(item.intervention_id)}
                        >
                          Undo
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            {shown && <Bytes item={shown} onClose={() => setShown(null)} />}
          </>
        )
      }
    </Loaded>
  );
}

function State({ item }: { item: InterventionItem }) {
  if (item.reversed_at) return <Tag tone="idle">undone</Tag>;
  if (item.confirmed_at) return <Tag tone="good">confirmed</Tag>;
  if (item.acknowledged_at) return <Tag tone="active">{acknowledged(item.proven)}</Tag>;
  if (["pause", "inject", "cancel"].includes(item.command)) return <Tag tone="blocked">requested</Tag>;
  return <Tag tone="good">done</Tag>;
}

function Hash({ hash }: { hash: string | null }) {
  return hash ? (
    <Id id={hash.replace("sha256:", "")} length={10} />
  ) : (
    <span className={classes.note}>none</span>
  );
}

/** The archived bytes; for an edit also the new content, with the difference. */
function Bytes({ item, onClose }: { item: InterventionItem; onClose: () => void }) {
  const isNew = item.command === "rewrite" || item.command === "edit";
  const request = useQuery<{ sent: string; put: string | null }, Problem>({
    queryKey: ["bytes of", item.intervention_id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const { message_id, intervention_id } = item;
      const text = (content: Uint8Array) => new TextDecoder().decode(content);
      const params = { message_id: message_id ?? "", intervention_id };
      const sent = text(await bytes("/v1/messages/{message_id}", { params, query: { raw: true } }));
      if (!isNew) return { sent, put: null };
      return { sent, put: text(await bytes("/v1/interventions/{intervention_id}/content", { params })) };
    },
  });
  return (
    <Modal opened onClose={onClose} size="xl" title={`${COMMANDS[item.command]?.word}: exact bytes`}>
      <Loaded query={request} rows={8}>
        {({ sent, put }) => (
          <div className={classes.bytes}>
            {put !== null && <Diff before={pretty(sent)} after={pretty(put)} label="Changes" />}
            <Sent title={`Original, ${plural(sent.length, "character")}`} text={sent} />
            {put !== null && <Sent title={`New content, ${plural(put.length, "character")}`} text={put} />}
          </div>
        )}
      </Loaded>
    </Modal>
  );
}

function Sent({ title, text }: { title: string; text: string }) {
  return (
    <figure>
      <figcaption>{title}</figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long text must be scrollable by keyboard */}
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}
