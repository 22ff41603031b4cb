// Search field text, written to the URL a moment later, and read from it only when something else changed it
// (the back button, "show all"): our own write comes back late, when more may be typed.
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

export function useSearchText(q: string, say: (q: string | null) => void) {
  const [text, setText] = useState(q);
  const lastWritten = useRef(q);
  const soon = useDebouncedCallback((typed: string) => {
    lastWritten.current = typed.trim();
    say(lastWritten.current || null);
  }, 200);
  useEffect(() => {
    if (q === lastWritten.current) return;
    lastWritten.current = q;
    setText(q);
  }, [q]);
  const type = (typed: string) => {
    setText(typed);
    soon(typed);
  };
  /** Empties the field; the caller updates the URL. */
  const clear = () => {
    soon.cancel();
    lastWritten.current = "";
    setText("");
  };
  return { text, type, clear };
}
