// The row the keys act on. It stays with its session while rows move; an open side panel follows it.
import { useCallback, useState } from "react";
import { usePeek } from "~/shell/peek";
import type { SessionRow } from "./session";

/** The neighbour of the cursor, clamped to the list; without a cursor the first (or the last, going up). */
export function moved(
  rows: readonly { session_id: string }[],
  from: string | null,
  by: 1 | -1,
): string | null {
  const at = rows.findIndex((row) => row.session_id === from);
  if (at === -1) return rows[by === 1 ? 0 : rows.length - 1]?.session_id ?? null;
  return rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.session_id ?? null;
}

export function useCursor(rows: readonly SessionRow[]) {
  const { peek, open, close } = usePeek();
  const peeked = peek?.kind === "session" ? peek.id : null;
  const [own, setOwn] = useState<string | null>(null);
  const cursor = peeked ?? own;
  const point = useCallback(
    (id: string, peekToo: boolean) => {
      setOwn(id);
      if (peekToo || peeked !== null) open(`session:${id}`);
    },
    [open, peeked],
  );
  const move = (by: 1 | -1) => {
    const next = moved(rows, cursor, by);
    if (next === null) return;
    point(next, false);
    // The row may not exist before the list has scrolled to it.
    requestAnimationFrame(() => focusRow(next));
  };
  const togglePeek = () => {
    const id = cursor ?? rows[0]?.session_id;
    if (id === undefined) return;
    if (peeked === id) close();
    else point(id, true);
  };
  const at = cursor ?? rows[0]?.session_id ?? null;
  return { cursor, at, point, move, togglePeek };
}

function focusRow(id: string, tries = 3): void {
  const row = document.querySelector<HTMLElement>(`[data-session="${CSS.escape(id)}"]`);
  if (row) row.focus({ preventScroll: true });
  else if (tries > 0) requestAnimationFrame(() => focusRow(id, tries - 1));
}
