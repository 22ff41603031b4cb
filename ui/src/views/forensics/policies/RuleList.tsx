// The rules in their order, and the default below them. A rule is moved by its handle: dragged, or with the
// arrow keys while focused. Disable and remove act at once and can be undone; enable goes through the editor,
// because the rule is tested first.
import { Button } from "@mantine/core";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Problem } from "~/api/client";
import { changeRule, removeRule } from "~/commands/policies";
import type { DryRunAnswer, PolicyItem, PolicyList } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { keepDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNames } from "~/widgets/users";
import type { Ordering } from "./Policies";
import classes from "./Policies.module.css";
import { bodyOf, draftOf, EFFECTS, moved, sentence } from "./rules";

interface Props {
  list: PolicyList;
  ordering: Ordering | null;
  setOrdering: (next: Ordering | null) => void;
  counts: DryRunAnswer | null;
  chosen: string | undefined;
  denied: string | undefined;
  open: (rule: string) => void;
}

export function RuleList({ list, ordering, setOrdering, counts, chosen, denied, open }: Props) {
  const byId = new Map(list.items.map((rule) => [rule.rule_id, rule]));
  const now = list.items.map((rule) => rule.rule_id);
  // While a conflict is unresolved, the saved version is in force and shown.
  const order = ordering && ordering.was.join() === now.join() ? ordering.order : now;
  const box = useRef<HTMLOListElement>(null);
  const [held, setHeld] = useState<string | null>(null);
  const [announcement, setAnnouncement] = useState("");
  const focus = useRef<string | null>(null);

  const place = (id: string, to: number) => {
    const next = moved(order, id, to);
    if (next.join() === order.join()) return;
    setOrdering(next.join() === now.join() ? null : { order: next, was: now });
    setAnnouncement(`Moved to position ${next.indexOf(id) + 1} of ${next.length}; not saved yet.`);
  };
  const latest = useRef(place);
  latest.current = place;

  // A row that moves in the document loses focus; restore it.
  useLayoutEffect(() => {
    if (focus.current === null) return;
    box.current?.querySelector<HTMLElement>(`[data-handle="${CSS.escape(focus.current)}"]`)?.focus();
    focus.current = null;
  });

  // On the window: the dragged row moves in the document meanwhile.
  useEffect(() => {
    if (held === null) return;
    const move = (event: PointerEvent) => {
      const rows = [...(box.current?.children ?? [])];
      const to = rows.filter((row) => {
        const { top, height } = row.getBoundingClientRect();
        return row.getAttribute("data-rule") !== held && event.clientY > top + height / 2;
      }).length;
      latest.current(held, to);
    };
    const end = () => setHeld(null);
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
    return () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
    };
  }, [held]);

  const key = (event: React.KeyboardEvent, id: string) => {
    const by = { ArrowUp: -1, ArrowDown: 1, Home: -order.length, End: order.length }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    focus.current = id;
    place(id, order.indexOf(id) + by);
  };

  return (
    <div className={classes.scroll}>
      <ol className={classes.rules} ref={box} aria-label="Rules in their order">
        {order.map((id, n) => {
          const rule = byId.get(id);
          return (
            rule && (
              <RuleLine
                key={id}
                rule={rule}
                place={n + 1}
                isHeld={held === id}
                isCurrent={chosen === id}
                stopped={counts?.by_rule.find((one) => one.rule_id === id)?.messages}
                denied={denied}
                open={open}
                onKey={(event) => key(event, id)}
                onHold={() => setHeld(id)}
              />
            )
          );
        })}
      </ol>
      <div className={classes.rest}>
        <span>then</span>
        <Tag tone={EFFECTS[list.default].tone}>
          {EFFECTS[list.default].mark} {EFFECTS[list.default].word}
        </Tag>
        <span>
          {list.default === "allow"
            ? "Default: allow what no rule matches. Heartbeats, decision requests, their answers and system events always pass."
            : "Default: deny what no rule matches. Heartbeats, decision requests, their answers and system events always pass."}
        </span>
      </div>
      <p className="unseen" role="status">
        {announcement}
      </p>
    </div>
  );
}

interface LineProps {
  rule: PolicyItem;
  place: number;
  isHeld: boolean;
  isCurrent: boolean;
  stopped: number | undefined;
  denied: string | undefined;
  open: (rule: string) => void;
  onKey: (event: React.KeyboardEvent) => void;
  onHold: () => void;
}

function RuleLine({ rule, place, isHeld, isCurrent, stopped, denied, open, onKey, onHold }: LineProps) {
  const names = useNames();
  const [asking, setAsking] = useState(false);
  const sign = EFFECTS[rule.effect];
  const text = sentence(rule);
  const off = () => {
    const was = bodyOf(rule);
    return changeRule(rule.rule_id, { ...was, enabled: false }, was, {
      confirm: false,
      text: "The rule is disabled and keeps its position.",
    });
  };
  // Not at once: the editor opens with the rule enabled, and requires a test.
  const on = () => {
    const kept = { draft: { ...draftOf(rule), enabled: true }, was: bodyOf(rule) };
    keepDraft(`policy ${rule.rule_id}`, JSON.stringify(kept));
    open(rule.rule_id);
  };
  const remove = (confirm: boolean) =>
    removeRule(rule, confirm, (problem: Problem) => {
      if (problem.reason !== "locks_everyone_out") return false;
      setAsking(true);
      return true;
    }).finally(() => confirm && setAsking(false));
  return (
    <li
      className={classes.rule}
      data-rule={rule.rule_id}
      data-held={isHeld || undefined}
      data-off={!rule.enabled || undefined}
      aria-current={isCurrent || undefined}
    >
      <button
        type="button"
        className={classes.handle}
        data-handle={rule.rule_id}
        aria-label={`Move rule ${place}: ${text}`}
        title={denied ?? "Drag, or move with the arrows"}
        disabled={denied !== undefined}
        onKeyDown={onKey}
        onPointerDown={(event) => {
          event.currentTarget.focus();
          event.preventDefault();
          onHold();
        }}
      >
        <span aria-hidden>⋮⋮</span>
      </button>
      <span className={classes.number}>{place}</span>
      <span className={classes.effect}>
        <Tag tone={rule.enabled ? sign.tone : "idle"}>
          <span title={sign.means}>
            {sign.mark} {sign.word}
          </span>
        </Tag>
      </span>
      <div className={classes.says}>
        <button type="button" className={classes.open} onClick={() => open(rule.rule_id)}>
          {text}
        </button>
        <p className={classes.under}>
          {!rule.enabled && <b>– disabled</b>}
          {rule.note && <span>{rule.note}</span>}
          {rule.enabled && stopped !== undefined && (
            <b>{stopped === 0 ? "nothing" : stopped.toLocaleString("en")} in the last hour</b>
          )}
          <span>
            <Ago at={rule.updated_at} /> by {names(rule.updated_by)}
          </span>
        </p>
        {asking && (
          <ConfirmInline
            does="Remove anyway"
            onYes={() => remove(true)}
            onNo={() => setAsking(false)}
            typed="deny everything"
          >
            <p>Without this rule nothing is allowed: the default is deny. No agent could send a step.</p>
          </ConfirmInline>
        )}
      </div>
      <span className={classes.acts}>
        <Button
          size="compact-xs"
          variant="default"
          disabled={denied !== undefined}
          title={denied ?? (rule.enabled ? "Keeps its position" : "Tested first, then saved")}
          onClick={() => (rule.enabled ? void off() : on())}
        >
          {rule.enabled ? "Disable" : "Enable…"}
          <span className="unseen"> rule {place}</span>
        </Button>
        <Button
          size="compact-xs"
          variant="default"
          disabled={denied !== undefined}
          title={denied ?? "Can be undone"}
          onClick={() => void remove(false)}
        >
          Remove<span className="unseen"> rule {place}</span>
        </Button>
      </span>
    </li>
  );
}
