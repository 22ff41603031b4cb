// Numbers agree with their noun everywhere: "1 step", "2 steps", "1,204 messages". Pure.
import { WHOLE } from "~/locale";

/** "1 step", "2 steps"; `many` is for irregular plurals. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${WHOLE.format(n)} ${n === 1 ? one : many}`;
}

/** The noun or verb alone, where the number stands elsewhere: `noun(2, "is", "are")`. */
export function noun(n: number, one: string, many = `${one}s`): string {
  return n === 1 ? one : many;
}
