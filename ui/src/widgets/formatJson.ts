// Formats JSON without parsing it into values (S1111): a number keeps its digits, a duplicate name is shown
// twice. `JSON.parse` would round the one and drop the other, and a person would approve something the bytes
// do not contain. Pure.

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Characters for their escapes; invisible ones are named where they are shown. */
const opened = (token: string): string => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Invalid JSON is returned unchanged. */
export function indented(text: string): string {
  if (parsed(text) === undefined) return text;
  const tokens = text.match(TOKENS) ?? [];
  let depth = 0;
  let made = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [n, token] of tokens.entries()) {
    const before = tokens[n - 1];
    const isEmpty = before === "{" || before === "[";
    if (token === "{" || token === "[") {
      depth += 1;
      const next = tokens[n + 1];
      made += token + (next === "}" || next === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      made += (isEmpty ? "" : line()) + token;
    } else if (token === ",") made += `,${line()}`;
    else if (token === ":") made += ": ";
    else made += opened(token);
  }
  return made;
}

/** Whether an object has a duplicate name: parsers differ in which value they use. */
export function hasTwice(text: string): boolean {
  if (parsed(text) === undefined) return false;
  const tokens = text.match(TOKENS) ?? [];
  const open: Set<string>[] = [];
  for (const [n, token] of tokens.entries()) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (tokens[n + 1] === ":") {
      const name = opened(token);
      if (open.at(-1)?.has(name)) return true;
      open.at(-1)?.add(name);
    }
  }
  return false;
}
