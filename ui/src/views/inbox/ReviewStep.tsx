// A step its agent was not sure of. It has passed already; a look says whether it was right, for the record
// and for whoever builds on it. Two presses by key, one click by mouse.
import { Button, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { type Outcome, review } from "~/acts/acts";
import type { WaitingItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { useExact } from "~/widgets/exact";
import { ExactBytes } from "~/widgets/GateCard";
import { Shown } from "~/widgets/Panel";
import { useSettled } from "~/widgets/settled";
import classes from "./Inbox.module.css";

const OUTCOMES: { verdict: Outcome; text: string }[] = [
  { verdict: "ok", text: "It is fine" },
  { verdict: "wrong", text: "It is wrong" },
  { verdict: "unsure", text: "I cannot tell" },
];

export function ReviewStep({ item, done }: { item: WaitingItem; done: () => void }) {
  const [note, setNote] = useDraft(`review ${item.id}`);
  const settled = useSettled();
  const [busy, setBusy] = useState(false);
  const [armed, setArmed] = useState<Outcome | null>(null);
  const exact = useExact(item.message_id, item.session_id, null);
  const can = item.can.find((one) => one.verb === "review");
  const say = async (verdict: Outcome) => {
    if (busy || !can?.allowed) return;
    setBusy(true);
    const said = await review(item.id, verdict, note);
    setBusy(false);
    if (!said) return;
    setNote(null);
    done();
  };
  const press = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const nth = OUTCOMES[Number(event.key) - 1];
    if (nth) setArmed(nth.verdict);
    else if (event.key === "Enter" && armed && !(event.target instanceof HTMLButtonElement)) void say(armed);
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the whole pane, every part has its own too
    <div className={classes.ask} onKeyDown={press} data-pane tabIndex={-1}>
      <p className={classes.why}>{item.why}.</p>
      <Shown asked={exact} rows={8}>
        {(content) => <ExactBytes content={content} digest={null} />}
      </Shown>
      <TextInput
        label="What you found (optional, kept in the record)"
        value={note ?? ""}
        onChange={(event) => setNote(event.currentTarget.value || null)}
        maxLength={4096}
      />
      <div className={classes.answers}>
        {OUTCOMES.map(({ verdict, text }, n) => (
          <Button
            key={verdict}
            variant={verdict === "ok" ? "filled" : "default"}
            data-armed={armed === verdict || undefined}
            className={classes.button}
            disabled={!can?.allowed || busy || !settled}
            title={can?.why ?? undefined}
            leftSection={<kbd aria-hidden>{n + 1}</kbd>}
            onClick={(event) => event.detail < 2 && void say(verdict)}
          >
            {armed === verdict ? `Enter: ${text.toLowerCase()}` : text}
          </Button>
        ))}
      </div>
      {can?.why && <p className={classes.faint}>{can.why}</p>}
      <p className={classes.faint}>
        Nothing is sent or stopped by this. To act on it, see it in its session: pause the agent, or mark what
        it wrote as false.
      </p>
    </div>
  );
}
