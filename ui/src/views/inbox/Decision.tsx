// An agent's decision request with its options. 1–9 selects, Enter sends the selected one: two steps, because
// a response cannot be undone. The digits work only inside this pane; elsewhere they switch views.
import { Button, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { useApi } from "~/api/queries";
import { dismiss, respond } from "~/commands/session";
import type { WaitingItem } from "~/protocol/openapi";
import { useKeys } from "~/shell/keys";
import { useDraft } from "~/widgets/drafts";
import { Left } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import classes from "./Inbox.module.css";
import { RISKS } from "./ItemList";

export function Decision({ item, done }: { item: WaitingItem; done: () => void }) {
  const options = item.options ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const [note, setNote] = useDraft(`answer ${item.id}`);
  const [busy, setBusy] = useState(false);
  const [sure, setSure] = useState(false);
  const whole = useApi("/v1/decisions/{decision_id}", undefined, { params: { decision_id: item.id } });
  const can = (verb: "respond" | "cancel") => item.can.find((one) => one.verb === verb);
  const option = options.find((one) => one.option_id === chosen);
  const run = async (act: () => Promise<unknown>) => {
    setBusy(true);
    const response = await act();
    setBusy(false);
    if (!response) return;
    setNote(null);
    done();
  };
  const send = () => {
    if (option && can("respond")?.allowed && !busy) void run(() => respond(item.id, option, note));
  };
  const press = (event: KeyboardEvent) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type === "text";
    const nth = typing ? undefined : options[Number(event.key) - 1];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (nth) setChosen(nth.option_id);
    else if (event.key === "Enter" && option && !(event.target instanceof HTMLButtonElement)) send();
    else return;
    event.preventDefault();
  };
  useKeys(option ? { Enter: { says: `Answer “${option.label}”`, run: send } } : {}, "Question");
  const why = can("respond");
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the whole pane, every part has its own too
    <div className={classes.ask} onKeyDown={press} data-pane tabIndex={-1}>
      <p className={classes.why}>{item.why}</p>
      {whole.data?.description && whole.data.description !== item.why && <p>{whole.data.description}</p>}
      {(whole.data?.context_refs.length ?? 0) > 0 && (
        <ul className={classes.refs}>
          {whole.data?.context_refs.map((ref) => (
            <li key={ref.uri}>
              {ref.label ?? ref.ref_type ?? "see"}: <code>{ref.uri}</code>
            </li>
          ))}
        </ul>
      )}
      {item.deadline && (
        <p>
          <Left until={item.deadline} />
          {", "}
          {item.on_expiry === "auto"
            ? "then the recommended option is chosen automatically."
            : "then the request expires."}
        </p>
      )}
      <fieldset className={classes.options}>
        <legend>Options</legend>
        {options.map((one, n) => (
          <label
            key={one.option_id}
            className={classes.option}
            data-chosen={one.option_id === chosen || undefined}
          >
            <input
              type="radio"
              name={item.id}
              checked={one.option_id === chosen}
              onChange={() => setChosen(one.option_id)}
            />
            <kbd aria-hidden>{n + 1}</kbd>
            <span className={classes.optionText}>{one.label}</span>
            {one.is_default && <Tag tone="good">recommended</Tag>}
            {one.risk_level && <Tag tone={RISKS[one.risk_level]}>{one.risk_level} risk</Tag>}
          </label>
        ))}
      </fieldset>
      <TextInput
        label="Note, recorded and sent to the agent (optional)"
        value={note ?? ""}
        onChange={(event) => setNote(event.currentTarget.value || null)}
        maxLength={1000}
      />
      <div className={classes.answers}>
        <Button disabled={!option || !why?.allowed || busy} title={why?.why ?? undefined} onClick={send}>
          {option ? `Answer “${option.label}” (notify ${item.agent_id ?? "the agent"})` : "Select an answer"}
        </Button>
        {can("cancel") && (
          <Button
            variant="default"
            data-danger
            className={classes.button}
            disabled={!can("cancel")?.allowed || busy}
            title={can("cancel")?.why ?? undefined}
            onClick={(event) => {
              if (event.detail > 1) return;
              if (sure) void run(() => dismiss(item.id));
              else setSure(true);
            }}
            onBlur={() => setSure(false)}
          >
            {sure ? "Confirm: cancel the request" : `Cancel request (notify ${item.agent_id ?? "the agent"})`}
          </Button>
        )}
      </div>
      {why && !why.allowed && <p className={classes.faint}>{why.why}</p>}
    </div>
  );
}
