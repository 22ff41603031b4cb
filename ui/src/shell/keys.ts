// Every keyboard shortcut of the page: one listener, the newest registration of a key wins, the shell's own
// (`base`) come last. Nothing runs while typing or while a dialog is open, so a letter never acts by
// accident. The help overlay lists exactly the active registrations.
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Key {
  run: () => void;
  says: string;
}
export type KeyMap = Record<string, Key>;
export interface Group {
  where: string;
  base: boolean;
  keys: KeyMap;
}

/** Registrations in order of arrival; separate from the page so that it can be tested without one. */
export class Keys {
  private groups: Group[] = [];
  private shown: readonly Group[] = [];
  private readonly listeners = new Set<() => void>();

  add(group: Group): () => void {
    this.groups = [...this.groups, group];
    this.changed();
    return () => {
      this.groups = this.groups.filter((each) => each !== group);
      this.changed();
    };
  }

  /** The newest of a view before the newest of the shell. */
  find(name: string): Key | undefined {
    for (const base of [false, true]) {
      for (const group of this.groups.toReversed()) {
        if (group.base === base && group.keys[name]) return group.keys[name];
      }
    }
    return undefined;
  }

  inForce(): readonly Group[] {
    return this.shown;
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private changed(): void {
    // The view's keys first: they are what users look for.
    this.shown = [...this.groups].sort((a, b) => Number(a.base) - Number(b.base));
    for (const listener of this.listeners) listener();
  }
}

interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** `j`, `?`, `Escape`, `Space`, `mod+k`; letters match in both cases unless the upper one is registered. */
export function nameOf(pressed: Pressed): string {
  const key = pressed.key === " " ? "Space" : pressed.key;
  if (pressed.altKey) return `alt+${key.toLowerCase()}`;
  return pressed.ctrlKey || pressed.metaKey ? `mod+${key.toLowerCase()}` : key;
}

/** A key held down repeats movement; it never repeats an action, a confirmation or an undo. */
export function isRepeatable(name: string): boolean {
  return /^(Arrow\w+|[jk[\]])$/i.test(name);
}

export const keys = new Keys();

const FIELDS = "input, textarea, select, [contenteditable=''], [contenteditable=true], [role=combobox]";
/** These handle Enter, Space and Escape themselves. */
const OWN = "[role=menu], [role=listbox], [aria-haspopup][aria-expanded=true]";

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement) || !target.matches(FIELDS)) return false;
  return !(
    target instanceof HTMLInputElement && ["checkbox", "radio", "range", "button"].includes(target.type)
  );
}

function modal(): boolean {
  return document.querySelector('[role="dialog"][aria-modal="true"]') !== null;
}

/** Menus, trays and floating lists close on Esc themselves. */
function floating(): boolean {
  const open = document.querySelectorAll(
    ".mantine-Popover-dropdown, .mantine-Menu-dropdown, .mantine-Combobox-dropdown",
  );
  return [...open].some((one) => one.checkVisibility());
}

function start(): void {
  let hushed = false;
  // Captured before other handlers: the Esc that closes a dialog must not close what is behind it.
  window.addEventListener(
    "keydown",
    (event) => {
      hushed = modal() || (event.key === "Escape" && floating());
      // The browser repeats the click of a focused button while Enter is held.
      if (event.repeat && event.key === "Enter" && event.target instanceof HTMLButtonElement)
        event.preventDefault();
    },
    { capture: true },
  );
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const name = nameOf(event);
    const modified = name.startsWith("mod+");
    if (hushed && name !== "mod+k") return;
    const target = event.target;
    if (!modified && typing(target)) {
      if (name === "Escape") (target as HTMLElement).blur();
      return;
    }
    if (!modified && target instanceof Element && target.closest(OWN)) return;
    // A focused button or link keeps its own Enter and Space.
    if (
      (name === "Enter" || name === "Space") &&
      target instanceof Element &&
      target.closest("button, a, summary")
    )
      return;
    const found = keys.find(name) ?? (name.length === 1 ? keys.find(name.toLowerCase()) : undefined);
    if (!found) return;
    event.preventDefault();
    if (!event.repeat || isRepeatable(name)) found.run();
  });
}

if (typeof window !== "undefined") start();

/** Registers keys while the component is mounted. `where` is their heading in the help overlay. */
export function useKeys(map: KeyMap, where = "This view", base = false): void {
  const latest = useRef(map);
  latest.current = map;
  // Re-registered only when names or texts change; what they run is always the latest.
  const signature = JSON.stringify(Object.entries(map).map(([name, { says }]) => [name, says]));
  useEffect(() => {
    const names = JSON.parse(signature) as [string, string][];
    if (names.length === 0) return;
    const kept = names.map(
      ([name, says]) => [name, { says, run: () => latest.current[name]?.run() }] as const,
    );
    return keys.add({ where, base, keys: Object.fromEntries(kept) });
  }, [signature, where, base]);
}

export function useKeysInForce(): readonly Group[] {
  return useSyncExternalStore(keys.watch, () => keys.inForce());
}
