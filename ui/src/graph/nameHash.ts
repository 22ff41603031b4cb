// Numbers from names (hashing): the same name gives the same number on every machine and after every reload,
// so that the map needs no stored positions.

/** FNV-1a, 32 bit, with a last mix so that names that differ in one digit land far apart. */
export function hash(text: string, seed = 0): number {
  let value = (0x811c9dc5 ^ seed) >>> 0;
  for (let at = 0; at < text.length; at++) {
    value ^= text.charCodeAt(at);
    value = Math.imul(value, 0x01000193);
  }
  return mix(value);
}

export function mix(value: number): number {
  let mixed = value | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** 0 (inclusive) to 1. */
export const unit = (text: string, seed = 0): number => hash(text, seed) / 4294967296;
