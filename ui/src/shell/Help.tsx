// Keyboard shortcuts overlay: every active key, by where it works. The list is generated from the
// registrations.
import { Kbd, Modal } from "@mantine/core";
import classes from "./Help.module.css";
import { type Group, useKeysInForce } from "./keys";
import { show } from "./overlays";

const NAMES: Record<string, string> = {
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Enter: "Enter",
  Space: "Space",
};

export function keyName(name: string): string {
  const mac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.userAgent);
  if (name.startsWith("mod+")) return `${mac ? "⌘" : "Ctrl "}${name.slice(4).toUpperCase()}`;
  return NAMES[name] ?? (name.length === 1 ? name.toUpperCase() : name);
}

/** Registrations with the same heading are merged; a key shadowed by a newer one is left out. */
export function merged(
  groups: readonly Group[],
): { where: string; rows: { names: string[]; says: string }[] }[] {
  const seen = new Set<string>();
  const lists = new Map<string, Map<string, string[]>>();
  for (const group of groups) {
    for (const [name, { says }] of Object.entries(group.keys)) {
      if (seen.has(name)) continue;
      seen.add(name);
      const list = lists.get(group.where) ?? new Map<string, string[]>();
      list.set(says, [...(list.get(says) ?? []), name]);
      lists.set(group.where, list);
    }
  }
  return [...lists].map(([where, list]) => ({
    where,
    rows: [...list].map(([says, names]) => ({ says, names })),
  }));
}

export function Help({ opened }: { opened: boolean }) {
  const groups = useKeysInForce();
  return (
    <Modal
      opened={opened}
      onClose={() => show(null)}
      title="Keyboard shortcuts"
      size={680}
      classNames={{ body: classes.body }}
    >
      {merged(groups).map(({ where, rows }) => (
        <section key={where}>
          <h3>{where}</h3>
          <dl>
            {rows.map(({ names, says }) => (
              <div key={says}>
                <dt>
                  {names.map((name) => (
                    <Kbd key={name}>{keyName(name)}</Kbd>
                  ))}
                </dt>
                <dd>{says}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Modal>
  );
}
