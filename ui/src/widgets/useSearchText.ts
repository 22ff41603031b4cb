// What is typed into a search field, said to the URL a moment later, and taken over from it only when others
// changed it (the back button, "show all"): what we said ourselves comes back late, when more may be typed.
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

export function useSearchText(q: string, say: (q: string | null) => void) {
  const [text, setText] = useState(q);
  const said = useRef(q);
  const soon = useDebouncedCallback((typed: string) => {
    said.current = typed.trim();
    say(said.current || null);
  }, 200);
  useEffect(() => {
    if (q === said.current) return;
    said.current = q;
    setText(q);
  }, [q]);
  const type = (typed: string) => {
    setText(typed);
    soon(typed);
  };
  /** Empties the field; whoever clears tells the URL. */
  const clear = () => {
    soon.cancel();
    said.current = "";
    setText("");
  };
  return { text, type, clear };
}
