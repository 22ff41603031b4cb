// Whether the shown item has been on screen long enough to be decided. After a decision the next item takes
// its place at once: the second press of a double click, meant for the previous one, must not decide it
// unread.
import { useEffect, useState } from "react";

const SETTLES_MS = 400;

export function useSettled(): boolean {
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLES_MS);
    return () => clearTimeout(timer);
  }, []);
  return settled;
}
