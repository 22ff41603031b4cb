// A low-confidence step. It has already passed; the review records whether it was correct. Two presses by
// key, one click by mouse.
import { Button, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { type Outcome, review } from "~/commands/session";
import type { WaitingItem } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { useExact } from "~/widgets/exactBytes";
import { ExactBytes } from "~/widgets/GateCard";
import { Loaded } from "~/widgets/Panel";
import { useSettled } from "~/widgets/useSettled";
import classes from "./Inbox.module.css";

const OUTCOMES: { verdict: Outcome; text: string }[] = [
  { verdict: "ok", text: "Correct" },
  { verdict: "wrong", text: "Incorrect" },
  { verdict: "unsure", text: "Unsure" },
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
    const answer = await review(item.id, verdict, note);
    setBusy(false);
    if (!answer) return;
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
      <Loaded query={exact} rows={8}>
        {(content) => <ExactBytes content={content} digest={null} />}
      </Loaded>
      <TextInput
        label="Note (optional, recorded)"
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
        A review sends and stops nothing. To act, open the step in its session: pause the agent, or mark its
        output as false.
      </p>
    </div>
  );
}
