// ⌘K command palette: navigation and actions by typing. A combobox over a grouped list: arrows move, Enter
// runs.
import { Kbd, Loader, Modal } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { Icon } from "./Icon";
import { show, useOverlay } from "./overlays";
import classes from "./Palette.module.css";
import { type Mode, type PaletteItem, usePaletteItems } from "./paletteItems";

const ASKS: Record<Mode, string> = {
  all: "Go to an agent, session or step, or run a command…",
  search: "Search what agents said, agents and sessions…",
  pause: "Which agent to pause?",
};

export function Palette() {
  const overlay = useOverlay();
  const opened = overlay?.kind === "palette";
  return (
    <Modal.Root
      opened={opened}
      onClose={() => show(null)}
      size={620}
      yOffset="12vh"
      padding={0}
      transitionProps={{ duration: 120 }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label="Command palette">
        <Modal.Body>
          {opened && <Picking key={overlay.mode} mode={overlay.mode} text={overlay.text ?? ""} />}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

function Picking({ mode, text }: { mode: Mode; text: string }) {
  const [typed, setTyped] = useState(text);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  // The dialog focuses its first field when it opens; a change of mode makes a new one.
  useEffect(() => field.current?.focus(), []);
  const id = useId();
  const { groups, busy } = usePaletteItems(typed, mode, true);
  const flat = groups.flatMap((group) => group.offers);
  const chosen = Math.min(at, flat.length - 1);
  const run = (offer: PaletteItem | undefined) => {
    if (!offer) return;
    if (!offer.stays) show(null);
    offer.run();
  };
  const move = (by: number) => setAt((chosen + by + flat.length) % Math.max(1, flat.length));
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || (event.ctrlKey && event.key === "n")) move(1);
    else if (event.key === "ArrowUp" || (event.ctrlKey && event.key === "p")) move(-1);
    else if (event.key === "Enter") run(flat[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    list.current?.querySelector(`[data-at="${chosen}"]`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  let n = -1;
  return (
    <>
      <div className={classes.ask}>
        <Icon name="search" size={16} />
        <input
          ref={field}
          data-autofocus
          role="combobox"
          aria-expanded
          aria-controls={id}
          aria-activedescendant={flat[chosen] ? `${id}-${chosen}` : undefined}
          aria-label={ASKS[mode]}
          placeholder={ASKS[mode]}
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={press}
          spellCheck={false}
        />
        {busy && <Loader size={14} aria-label="asking" />}
        <Kbd>Esc</Kbd>
      </div>
      <div ref={list} id={id} role="listbox" aria-label="Results" className={classes.list} tabIndex={-1}>
        {groups.map(({ group, offers }) => (
          // biome-ignore lint/a11y/useSemanticElements: a group of options, not a set of fields
          <div key={group} role="group" aria-label={group}>
            <div className={classes.group} aria-hidden>
              {group}
            </div>
            {offers.map((offer) => {
              n += 1;
              const here = n;
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above has the keys
                // biome-ignore lint/a11y/useFocusableInteractive: focus stays in the combobox
                <div
                  key={offer.id}
                  id={`${id}-${here}`}
                  data-at={here}
                  role="option"
                  aria-selected={here === chosen}
                  className={classes.offer}
                  onMouseMove={() => setAt(here)}
                  onClick={() => run(offer)}
                >
                  <span className={classes.text}>{offer.text}</span>
                  {offer.more && <span className={classes.more}>{offer.more}</span>}
                  {offer.key && <Kbd>{offer.key}</Kbd>}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      {flat.length === 0 && !busy && (
        <p className={classes.none} role="status">
          No results for “{typed}”. Try part of an agent's name, a session's goal or a word from a message.
        </p>
      )}
    </>
  );
}
