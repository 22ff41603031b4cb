// Whether what is shown has stood long enough to be answered. After an answer the next thing takes its place at
// once: the second press of a double click, meant for the one before, must not answer it unread.
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
