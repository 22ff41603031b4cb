// Text of strangers, made harmless to the eye: control characters and those that turn the direction of writing
// are shown as signs instead of being obeyed. Pure. React escapes markup; this is about what is left.

// All but tab and line ends, which a text may have.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Not to be seen, or a line of its own: a place to hide something in. */
const HIDDEN = /[\u200b\u2060\ufeff\u2028\u2029\u00ad\u{e0000}-\u{e007f}]/gu;

function sign(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code <= 0x1f) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "␡" : "�";
}

/** One character for one: places in the text stay as they are. */
export function inert(text: string): string {
  return text
    .replace(CONTROLS, sign)
    .replace(TURNS, "�")
    .replace(HIDDEN, (char) => "�".repeat(char.length));
}

function named(char: string): string {
  return `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** With the name of what was there: for whoever looks closely. */
export function inertNamed(text: string): string {
  return text
    .replace(CONTROLS, (char) => (char.charCodeAt(0) <= 0x1f || char === "\u007f" ? sign(char) : named(char)))
    .replace(TURNS, named)
    .replace(HIDDEN, named);
}

/** The beginning of a text of which the whole would stop the page; never half a character. */
export function beginning(text: string, most: number): { text: string; left: number } {
  if (text.length <= most) return { text, left: 0 };
  const high = text.charCodeAt(most - 1);
  const end = high >= 0xd800 && high <= 0xdbff ? most - 1 : most;
  return { text: text.slice(0, end), left: text.length - end };
}
