// Makes untrusted text visually safe (S1110): invisible and direction-changing characters are shown by name
// instead of being applied, and words that mix scripts are labelled. Pure, and the same as
// `protocol/visible.py`. React escapes markup; jsx/shown.ts applies this to every text of a page.

/** Fast path for nearly all texts: printable ASCII, tab and line ends. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;
/** A whole emoji keeps its joiners and selectors; nothing else does. */
const EMOJI =
  "\\p{Extended_Pictographic}\\ufe0f?\\p{EMod}?(?:\\u200d\\p{Extended_Pictographic}\\ufe0f?\\p{EMod}?)*";
const HIDDEN = "[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]";
const FOUND = new RegExp(`${EMOJI}|(?![\\t\\n])${HIDDEN}`, "gu");
const IS_HIDDEN = new RegExp(`^${HIDDEN}$`, "u");
/** A CRLF is a line end too; a lone CR would overwrite its line. */
const LINE_END = /\r\n/g;

const WORD = /\p{L}[\p{L}\p{M}]*/gu;
/** Scripts with look-alike letters. */
const ALPHABETS: [string, RegExp][] = [
  "Latin",
  "Cyrillic",
  "Greek",
  "Armenian",
  "Cherokee",
  "Coptic",
  "Lisu",
].map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")]);
/** Cyrillic letters that look Latin in any font. */
const ALIKE = /^[асеорхуіѕјһԁԛԝӏАВЕКМНОРСТХУІЅЈ]+$/;
const CYRILLIC = /[\u0400-\u052f]+/g;
/** Styled Latin: full width, or mathematical. */
const DRESSED = /[\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}]/u;

function named(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code <= 0x1f) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** What is odd about a word's letters; "" for nearly all. `alike`: the text has no other Cyrillic. */
function scriptsOf(word: string, alike: boolean): string {
  if (DRESSED.test(word)) return "styled Latin";
  const found = ALPHABETS.filter(([, of]) => of.test(word)).map(([name]) => name);
  if (found.length > 1) return found.join("+");
  return alike && found[0] === "Cyrillic" ? "Cyrillic" : "";
}

function isAllAlike(text: string): boolean {
  const words = text.match(CYRILLIC);
  return !!words?.every((word) => ALIKE.test(word)) && words.some((word) => word.length > 2);
}

/** Adds a note behind each word of several scripts; idempotent. */
function noted(text: string): string {
  const alike = isAllAlike(text);
  return text.replace(WORD, (word, at: number) => {
    const scripts = scriptsOf(word, alike);
    if (scripts === "") return word;
    const note = `⟨${scripts}⟩`;
    return text.startsWith(note, at + word.length) ? word : word + note;
  });
}

/** Names invisible characters and mixed scripts. */
export function inert(text: string): string {
  if (PLAIN.test(text)) return text;
  const visible = text
    .replace(LINE_END, "\n")
    .replace(FOUND, (found) => (IS_HIDDEN.test(found) ? named(found) : found));
  return noted(visible);
}

/** Warnings to be read before a decision: a sentence for each kind of trick found. */
export function warningsOf(...texts: string[]): string[] {
  const odd = texts.filter((text) => !PLAIN.test(text));
  const found = odd.flatMap((text) => text.match(FOUND) ?? []).filter((one) => IS_HIDDEN.test(one));
  const warnings: string[] = [];
  if (found.length > 0) {
    const names = [...new Set(found)].sort().slice(0, 8).map(named);
    warnings.push(`contains invisible or text-direction characters: ${names.join(" ")}`);
  }
  if (odd.some((text) => noted(text) !== text))
    warnings.push("contains words that mix look-alike letters of several scripts");
  return warnings;
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Whether it has right-to-left letters: it must be isolated. */
export function turns(text: string): boolean {
  return RIGHT_TO_LEFT.test(text);
}

/** JSON with invisible characters as escapes: another text, the same value; for an editable field. */
export function escaped(json: string): string {
  if (PLAIN.test(json)) return json;
  return json.replace(FOUND, (found) =>
    IS_HIDDEN.test(found)
      ? found.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      : found,
  );
}

/** The beginning of a text that is too long for the page; never cut within a character. */
export function beginning(text: string, most: number): { text: string; left: number } {
  if (text.length <= most) return { text, left: 0 };
  const high = text.charCodeAt(most - 1);
  const end = high >= 0xd800 && high <= 0xdbff ? most - 1 : most;
  return { text: text.slice(0, end), left: text.length - end };
}
