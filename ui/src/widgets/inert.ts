// Text of strangers, made harmless to the eye (S1110): what cannot be seen or turns the direction of writing is
// shown by its name instead of being obeyed, and a word whose letters come from several scripts says so. Pure, and
// the same as `protocol/visible.py`. React escapes markup; jsx/shown.ts applies this to every text of a page.

/** Nothing to do for these, and nearly all texts are of these: printable ASCII, tab and line ends. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;
/** A whole emoji keeps its joiners and selectors; nothing else does. */
const EMOJI =
  "\\p{Extended_Pictographic}\\ufe0f?\\p{EMod}?(?:\\u200d\\p{Extended_Pictographic}\\ufe0f?\\p{EMod}?)*";
const HIDDEN = "[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]";
const FOUND = new RegExp(`${EMOJI}|(?![\\t\\n])${HIDDEN}`, "gu");
const IS_HIDDEN = new RegExp(`^${HIDDEN}$`, "u");
/** A CRLF is a line end too; alone, it would write a line over itself. */
const LINE_END = /\r\n/g;

const WORD = /\p{L}[\p{L}\p{M}]*/gu;
/** Alphabets whose letters are taken for one another. */
const ALPHABETS: [string, RegExp][] = [
  "Latin",
  "Cyrillic",
  "Greek",
  "Armenian",
  "Cherokee",
  "Coptic",
  "Lisu",
].map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")]);
/** Of Cyrillic, those that look like Latin ones in any font. */
const ALIKE = /^[асеорхуіѕјһԁԛԝӏАВЕКМНОРСТХУІЅЈ]+$/;
const CYRILLIC = /[\u0400-\u052f]+/g;
/** Latin in another dress: full width, or of the mathematicians. */
const DRESSED = /[\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}]/u;

function named(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code <= 0x1f) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** What is odd about a word's letters; "" of nearly all. `alike`: its text has no other Cyrillic. */
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

/** Each word of several scripts with a note behind it, once however often this is done. */
function noted(text: string): string {
  const alike = isAllAlike(text);
  return text.replace(WORD, (word, at: number) => {
    const scripts = scriptsOf(word, alike);
    if (scripts === "") return word;
    const note = `⟨${scripts}⟩`;
    return text.startsWith(note, at + word.length) ? word : word + note;
  });
}

/** With the name of what could not be seen, and of scripts that are mixed. */
export function inert(text: string): string {
  if (PLAIN.test(text)) return text;
  const visible = text
    .replace(LINE_END, "\n")
    .replace(FOUND, (found) => (IS_HIDDEN.test(found) ? named(found) : found));
  return noted(visible);
}

/** What a person must know before they answer for these: a sentence for each kind of trick found in them. */
export function warningsOf(...texts: string[]): string[] {
  const odd = texts.filter((text) => !PLAIN.test(text));
  const found = odd.flatMap((text) => text.match(FOUND) ?? []).filter((one) => IS_HIDDEN.test(one));
  const said: string[] = [];
  if (found.length > 0) {
    const names = [...new Set(found)].sort().slice(0, 8).map(named);
    said.push(`contains invisible or text-direction characters: ${names.join(" ")}`);
  }
  if (odd.some((text) => noted(text) !== text))
    said.push("contains words with letters of several scripts that look alike");
  return said;
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Whether it has letters that turn what stands next to it, lawfully: it is to be isolated. */
export function turns(text: string): boolean {
  return RIGHT_TO_LEFT.test(text);
}

/** JSON with what cannot be seen written as its escapes: another text, the same value; for a field to edit. */
export function escaped(json: string): string {
  if (PLAIN.test(json)) return json;
  return json.replace(FOUND, (found) =>
    IS_HIDDEN.test(found)
      ? found.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      : found,
  );
}

/** The beginning of a text of which the whole would stop the page; never half a character. */
export function beginning(text: string, most: number): { text: string; left: number } {
  if (text.length <= most) return { text, left: 0 };
  const high = text.charCodeAt(most - 1);
  const end = high >= 0xd800 && high <= 0xdbff ? most - 1 : most;
  return { text: text.slice(0, end), left: text.length - end };
}
